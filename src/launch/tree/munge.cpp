#include "launch/tree/munge.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "base/config.h"
#include "base/symbol.h"

namespace starling::launch {

namespace {

// Constants from munge.h, which need not be installed where Starling is built. They are fixed in version 2 of the library.
constexpr int kOptionSocket = 8, kOptionUser = 9;
constexpr int kSuccess = 0, kExpired = 15, kRewound = 16;

struct Library {
    int (*encode)(char** credential, void* context, const void* bytes, int size) = nullptr;
    int (*decode)(const char* credential, void* context, void** bytes, int* size, uid_t* user, gid_t* group) = nullptr;
    const char* (*message)(int error) = nullptr;
    void* (*create)() = nullptr;
    void (*destroy)(void*) = nullptr;
    int (*set)(void*, int, ...) = nullptr;
    bool complete = false;
};

const Library& library() {
    static const Library loaded = [] {
        Library l;
        void* const file = dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);
        l.complete = file && find_symbol(file, "munge_encode", l.encode) && find_symbol(file, "munge_decode", l.decode) &&
                     find_symbol(file, "munge_strerror", l.message) && find_symbol(file, "munge_ctx_create", l.create) &&
                     find_symbol(file, "munge_ctx_destroy", l.destroy) && find_symbol(file, "munge_ctx_set", l.set);
        return l;
    }();
    return loaded;
}

class MungeContext {
  public:
    MungeContext() : context_(library().create()) {
        if (context_ && config().munge_socket) library().set(context_, kOptionSocket, config().munge_socket);
    }
    ~MungeContext() {
        if (context_) library().destroy(context_);
    }
    void* get() const { return context_; }

  private:
    void* context_;
};

bool usable(std::string& why) {
    if (library().complete) return true;
    why = "MUNGE is not installed here (libmunge.so.2); install it, or set STARLING_AUTHENTICATION=key";
    return false;
}

bool explain(int error, std::string& why) {
    why = std::string("MUNGE: ") + library().message(error);
    if (error == kExpired || error == kRewound) why += "; the hosts' clocks differ by more than MUNGE allows: set them by NTP";
    if (error == kExpired || error == kRewound) return false;
    why += "; is munged running here, with the site's key?";
    if (const char* socket = config().munge_socket)
        why += " STARLING_MUNGE_SOCKET=" + std::string(socket) + " names its socket";
    return false;
}

}  // namespace

bool munge_seal(std::string_view bytes, std::string& credential, std::string& why) {
    if (!usable(why)) return false;
    const MungeContext context;
    library().set(context.get(), kOptionUser, geteuid());
    char* text = nullptr;
    const int error = library().encode(&text, context.get(), bytes.data(), static_cast<int>(bytes.size()));
    if (error == kSuccess) credential = text;
    std::free(text);
    return error == kSuccess || explain(error, why);
}

bool munge_open(const std::string& credential, std::string& bytes, std::string& why) {
    if (!usable(why)) return false;
    const MungeContext context;
    void* data = nullptr;
    int size = 0;
    uid_t user = 0;
    gid_t group = 0;
    const int error = library().decode(credential.c_str(), context.get(), &data, &size, &user, &group);
    if (error == kSuccess) bytes.assign(static_cast<const char*>(data), static_cast<size_t>(size));
    std::free(data);
    if (error != kSuccess) return explain(error, why);
    if (user == geteuid()) return true;
    why = "MUNGE: the credential is from another user";
    return false;
}

}  // namespace starling::launch
