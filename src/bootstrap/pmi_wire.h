// The messages of the PMI wire protocols, which a process speaks with the manager that started it over an
// inherited socket: PMI-1 is lines of blank-separated attributes, PMI-2 (after the first exchange) is
// attributes that end in semicolons, behind a length of six characters. What arrives is not trusted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starling::bootstrap::pmi {

/// A command and its attributes in order.
class Message {
  public:
    Message() = default;
    explicit Message(std::string_view command) { set("cmd", command); }

    Message& set(std::string_view name, std::string_view value);
    Message& set(std::string_view name, int value) { return set(name, std::to_string(value)); }

    std::string_view command() const { return get("cmd"); }
    bool has(std::string_view name) const;
    /// The attribute's value, empty if there is none.
    std::string_view get(std::string_view name) const;
    /// False unless the attribute is a decimal number that fits an int.
    bool number(std::string_view name, int& out) const;

    const std::vector<std::pair<std::string, std::string>>& attributes() const { return attributes_; }
    bool operator==(const Message&) const = default;

  private:
    std::vector<std::pair<std::string, std::string>> attributes_;
};

enum class Version { one = 1, two = 2 };

inline constexpr size_t kMostLine = 64 * 1024;  ///< bytes of a PMI-1 line; managers send up to 4 KB
inline constexpr size_t kMostBody = 999999;     ///< bytes of a PMI-2 body: what six digits can say

/// What goes on the wire. Empty if the message can't be said: a PMI-1 value with a blank or a line's end in
/// it, or a PMI-2 body that is too long.
std::string encode(Version version, const Message& message);

/// Cuts the byte stream into messages. Not thread-safe.
class Decoder {
  public:
    enum class Result { need_more, message, garbage };

    /// From the next message on; the first exchange is in version one's form whichever is spoken then.
    void set_version(Version version) { version_ = version; }
    void feed(std::string_view bytes);
    /// The next whole message, if there is one. After garbage nothing comes any more.
    Result next(Message& out);

  private:
    Result next_line(Message& out);
    Result next_body(Message& out);
    Result refuse();

    std::string buffer_;
    size_t begin_ = 0;
    Version version_ = Version::one;
    bool garbage_ = false;
};

}  // namespace starling::bootstrap::pmi
