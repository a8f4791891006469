// SHA-256 against the examples of FIPS 180-2, HMAC against RFC 4231.
#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace starling {
namespace {

std::string hex(const Sha256Digest& digest) {
    std::string text;
    for (const uint8_t byte : digest) {
        text.push_back("0123456789abcdef"[byte >> 4]);
        text.push_back("0123456789abcdef"[byte & 15]);
    }
    return text;
}

std::string sha256(std::string_view message, size_t step) {
    Sha256 hash;
    for (size_t at = 0; at < message.size(); at += step) hash.update(message.substr(at, step));
    return hex(hash.finish());
}

TEST(Sha256, PublishedExamples) {
    EXPECT_EQ(sha256("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sha256(std::string(1000000, 'a'), 1000000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, TheCutsDoNotMatter) {
    std::string message;
    for (int i = 0; i < 300; ++i) message.push_back(static_cast<char>(i * 7));
    for (size_t length = 0; length <= message.size(); ++length) {
        const std::string_view part = std::string_view(message).substr(0, length);
        const std::string whole = sha256(part, 1000);
        for (const size_t step : {1, 3, 63, 64, 65, 127}) EXPECT_EQ(sha256(part, step), whole) << length;
    }
}

struct Vector {
    std::string key, data, digest;
};

TEST(HmacSha256, Rfc4231) {
    std::string counting;
    for (int i = 1; i <= 25; ++i) counting.push_back(static_cast<char>(i));
    const Vector vectors[] = {
        {std::string(20, '\x0b'), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {std::string(20, '\xaa'), std::string(50, '\xdd'), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {counting, std::string(50, '\xcd'), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {std::string(131, '\xaa'),
         "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
         "hashed before being used by the HMAC algorithm.",
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
    for (const Vector& v : vectors) EXPECT_EQ(hex(hmac_sha256(v.key, v.data)), v.digest);
    // Case 5 of the RFC gives 128 bits only.
    EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0c'), "Test With Truncation")).substr(0, 32),
              "a3b6167473100ee06e0c796c2955552b");
}

TEST(HmacSha256, ACopyContinuesFromTheKey) {
    const HmacSha256 keyed("key");
    HmacSha256 first = keyed, second = keyed;
    first.update("message");
    second.update("mess");
    second.update("age");
    EXPECT_EQ(hex(first.finish()), hex(hmac_sha256("key", "message")));
    EXPECT_EQ(hex(second.finish()), hex(hmac_sha256("key", "message")));
}

TEST(EqualSecret, ComparesAll) {
    EXPECT_TRUE(equal_secret("", ""));
    EXPECT_TRUE(equal_secret("abc", "abc"));
    EXPECT_FALSE(equal_secret("abc", "abd"));
    EXPECT_FALSE(equal_secret("abc", "Abc"));
    EXPECT_FALSE(equal_secret("abc", "abcd"));
}

}  // namespace
}  // namespace starling
