#include "transport/network/crypto/cipher.h"

#include <dlfcn.h>
#include <sodium.h>  // only for declarations; load() looks up the functions in the library

#include <cstring>

#include "base/error.h"
#include "base/symbol.h"
#include "mpi.h"

namespace starling::network {

namespace {

constexpr const char* kLibrary = "libsodium.so.23";

static_assert(sizeof(SealKey) == crypto_aead_chacha20poly1305_ietf_KEYBYTES);
static_assert(sizeof(SealKey) == crypto_aead_aes256gcm_KEYBYTES && kSealTag == crypto_aead_aes256gcm_ABYTES);
static_assert(sizeof(ReadyKey::Expanded) == sizeof(crypto_aead_aes256gcm_state) &&
              crypto_aead_aes256gcm_NPUBBYTES == crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
static_assert(sizeof(SealKey) <= crypto_generichash_BYTES_MAX && kSealTag == crypto_aead_chacha20poly1305_ietf_ABYTES);

struct CipherNonce {
    explicit CipherNonce(uint64_t number) { std::memcpy(bytes, &number, sizeof number); }
    unsigned char bytes[crypto_aead_chacha20poly1305_ietf_NPUBBYTES] = {};
};

const unsigned char* raw(const void* bytes) { return static_cast<const unsigned char*>(bytes); }
unsigned char* raw(void* bytes) { return static_cast<unsigned char*>(bytes); }

class Sodium final : public Cipher {
  public:
    // Looks up the functions. The library is never unloaded and stores nothing of this process.
    bool find(void* library) {
        return find_symbol(library, "sodium_init", init_) && find_symbol(library, "sodium_memcmp", compare_) &&
               find_symbol(library, "crypto_aead_chacha20poly1305_ietf_encrypt_detached", seal_) &&
               find_symbol(library, "crypto_aead_chacha20poly1305_ietf_decrypt_detached", open_) &&
               find_symbol(library, "crypto_generichash_init", hash_init_) &&
               find_symbol(library, "crypto_generichash_update", hash_) &&
               find_symbol(library, "crypto_generichash_final", hash_final_) && init_() >= 0 && find_aes(library);
    }

    ReadyKey prepare(Suite suite, const SealKey& key) const override {
        ReadyKey made;
        if (suite == Suite::chacha) {
            made.key = key;
        } else {
            made.expanded = std::make_unique<ReadyKey::Expanded>();
            aes_expand_(aes_state(made), key.bytes);
        }
        return made;
    }
    void seal(const ReadyKey& key, uint64_t number, Bytes clear, std::span<std::byte> text, std::byte* tag) const override {
        unsigned char* const bytes = raw(text.data());
        if (key.expanded)
            aes_seal_(bytes, raw(tag), nullptr, bytes, text.size(), raw(clear.data()), clear.size(), nullptr,
                      CipherNonce(number).bytes, aes_state(key));
        else
            seal_(bytes, raw(tag), nullptr, bytes, text.size(), raw(clear.data()), clear.size(), nullptr,
                  CipherNonce(number).bytes, key.key.bytes);
    }
    bool open(const ReadyKey& key, uint64_t number, Bytes clear, std::span<std::byte> text,
              const std::byte* tag) const override {
        unsigned char* const bytes = raw(text.data());
        if (key.expanded)
            return aes_open_(bytes, nullptr, bytes, text.size(), raw(tag), raw(clear.data()), clear.size(),
                             CipherNonce(number).bytes, aes_state(key)) == 0;
        return open_(bytes, nullptr, bytes, text.size(), raw(tag), raw(clear.data()), clear.size(), CipherNonce(number).bytes,
                     key.key.bytes) == 0;
    }
    SealKey derive(Bytes key, const char* purpose, std::span<const Bytes> texts) const override {
        SealKey made;
        crypto_generichash_state state;
        hash_init_(&state, raw(key.data()), key.size(), sizeof made.bytes);
        hash_(&state, raw(purpose), std::strlen(purpose) + 1);
        for (const Bytes text : texts) hash_(&state, raw(text.data()), text.size());
        hash_final_(&state, made.bytes, sizeof made.bytes);
        return made;
    }
    bool equal(const void* a, const void* b, size_t bytes) const override { return compare_(a, b, bytes) == 0; }

  private:
    // Looks up AES, which the library provides on some kinds of processors only.
    bool find_aes(void* library) {
        decltype(&crypto_aead_aes256gcm_is_available) available = nullptr;
        has_aes = find_symbol(library, "crypto_aead_aes256gcm_is_available", available) && available() == 1 &&
                  find_symbol(library, "crypto_aead_aes256gcm_beforenm", aes_expand_) &&
                  find_symbol(library, "crypto_aead_aes256gcm_encrypt_detached_afternm", aes_seal_) &&
                  find_symbol(library, "crypto_aead_aes256gcm_decrypt_detached_afternm", aes_open_);
        return true;
    }
    static crypto_aead_aes256gcm_state* aes_state(const ReadyKey& key) {
        return reinterpret_cast<crypto_aead_aes256gcm_state*>(key.expanded.get());
    }

    decltype(&crypto_aead_aes256gcm_beforenm) aes_expand_ = nullptr;
    decltype(&crypto_aead_aes256gcm_encrypt_detached_afternm) aes_seal_ = nullptr;
    decltype(&crypto_aead_aes256gcm_decrypt_detached_afternm) aes_open_ = nullptr;
    decltype(&sodium_init) init_ = nullptr;
    decltype(&sodium_memcmp) compare_ = nullptr;
    decltype(&crypto_aead_chacha20poly1305_ietf_encrypt_detached) seal_ = nullptr;
    decltype(&crypto_aead_chacha20poly1305_ietf_decrypt_detached) open_ = nullptr;
    decltype(&crypto_generichash_init) hash_init_ = nullptr;
    decltype(&crypto_generichash_update) hash_ = nullptr;
    decltype(&crypto_generichash_final) hash_final_ = nullptr;
};

}  // namespace

int Cipher::load(std::unique_ptr<Cipher>& out, const char* setting) {
    void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    auto made = std::make_unique<Sodium>();
    if (!library || !made->find(library))
        return fail(MPI_ERR_OTHER,
                    "%s needs %s, which can't be used on this host (%s); install libsodium (Debian: libsodium23) on all hosts, "
                    "or set it to off",
                    setting, kLibrary, library ? "it lacks functions" : dlerror());
    out = std::move(made);
    return MPI_SUCCESS;
}

}  // namespace starling::network
