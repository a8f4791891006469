// The messages of the PMI wire protocols, which a process exchanges with the manager that started it over an inherited socket. A PMI-1
// message is a line of blank-separated attributes. A PMI-2 message (after the first exchange) is a length of six characters and attributes
// that end in semicolons. Incoming messages are not trusted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starling::bootstrap::pmi {

/// A command and its attributes in order.
class PmiMessage {
  public:
    PmiMessage() = default;
    explicit PmiMessage(std::string_view command) { set("cmd", command); }

    PmiMessage& set(std::string_view name, std::string_view value);
    PmiMessage& set(std::string_view name, int value) { return set(name, std::to_string(value)); }

    std::string_view command() const { return get("cmd"); }
    bool has(std::string_view name) const;
    /// Returns the attribute's value, empty if there is none.
    std::string_view get(std::string_view name) const;
    /// Reads the attribute as a decimal number; returns false if it is not one that fits an int.
    bool number(std::string_view name, int& out) const;

    const std::vector<std::pair<std::string, std::string>>& attributes() const { return attributes_; }
    bool operator==(const PmiMessage&) const = default;

  private:
    std::vector<std::pair<std::string, std::string>> attributes_;
};

enum class PmiVersion { one = 1, two = 2 };

inline constexpr size_t kMostLine = 64 * 1024;  ///< bytes of a PMI-1 line; managers send up to 4 KB
inline constexpr size_t kMostBody = 999999;     ///< bytes of a PMI-2 body: the most that six digits can express

/// Returns the message in wire format. Empty if it cannot be expressed: a PMI-1 value that contains a blank or a line end, or a PMI-2 body
/// that is too long.
std::string encode(PmiVersion version, const PmiMessage& message);

/// Splits the byte stream into messages. Not thread-safe.
class Decoder {
  public:
    enum class PmiReadResult { need_more, message, garbage };

    /// Sets the version from the next message on. The first exchange has the format of version one, whichever version follows.
    void set_version(PmiVersion version) { version_ = version; }
    void feed(std::string_view bytes);
    /// Returns the next whole message, if there is one. After garbage, always returns garbage.
    PmiReadResult next(PmiMessage& out);

  private:
    PmiReadResult next_line(PmiMessage& out);
    PmiReadResult next_body(PmiMessage& out);
    PmiReadResult refuse();

    std::string buffer_;
    size_t begin_ = 0;
    PmiVersion version_ = PmiVersion::one;
    bool garbage_ = false;
};

}  // namespace starling::bootstrap::pmi
