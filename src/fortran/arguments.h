// Conversions of Fortran's arguments for the generated entry points. In names, "In" marks values on their way to the library, "Out" and
// "Made" values on their way to the program.
#pragma once

#include <string>
#include <string_view>

#include "compat/convert.h"
#include "fortran/sentinels.h"

namespace starling::compat {

using fortran::Meaning;
using fortran::meaning_of;

/// Stores the error code of a call in the program's argument ierror, unless the program omitted it.
inline void give(int* ierror, int error) {
    if (ierror) *ierror = error_out(error);
}

/// Converts a buffer, which may be MPI_BOTTOM, MPI_IN_PLACE or MPI_BUFFER_AUTOMATIC.
template <class Pointer>
Pointer* place(Pointer* buffer) {
    switch (meaning_of(buffer)) {
        case Meaning::bottom:
            return static_cast<Pointer*>(MPI_BOTTOM);
        case Meaning::in_place:
            return reinterpret_cast<Pointer*>(MPI_IN_PLACE);
        case Meaning::buffer_automatic:
            return reinterpret_cast<Pointer*>(MPI_BUFFER_AUTOMATIC);
            [[likely]] default : return buffer;
    }
}
template <class Pointer>
Pointer* weights_place(Pointer* weights) {
    const Meaning meaning = meaning_of(weights);
    if (meaning == Meaning::unweighted) return reinterpret_cast<Pointer*>(MPI_UNWEIGHTED);
    return meaning == Meaning::weights_empty ? reinterpret_cast<Pointer*>(MPI_WEIGHTS_EMPTY) : weights;
}

/// statuses_place() converts an array of statuses that the call may write, unless it is MPI_STATUSES_IGNORE. A Fortran status is an array
/// of ints with the layout of the interface's C structure.
inline auto statuses_place(int* place, [[maybe_unused]] int count) {
    const bool ignored = meaning_of(place) == Meaning::status_ignore;
    if constexpr (std::is_same_v<abi::Status, MPI_Status>)
        return ignored ? MPI_STATUS_IGNORE : reinterpret_cast<MPI_Status*>(place);
    else
        return statuses_made(reinterpret_cast<abi::Status*>(ignored ? reinterpret_cast<int*>(abi::kStatusIgnore) : place),
                             count);
}
inline auto status_read(const int* place) {
    if constexpr (std::is_same_v<abi::Status, MPI_Status>)
        return reinterpret_cast<const MPI_Status*>(place);
    else
        return status_in(reinterpret_cast<const abi::Status*>(place));
}

/// A Fortran text that the call reads, without its trailing blanks.
class TextIn {
  public:
    TextIn(const char* text, size_t length) : text_(trimmed({text, length})) {}
    operator const char*() const { return text_.c_str(); }

    static std::string_view trimmed(std::string_view text) { return text.substr(0, text.find_last_not_of(' ') + 1); }

  private:
    const std::string text_;
};
inline TextIn text_in(const char* text, size_t length) { return {text, length}; }

/// Removes leading blanks: MPI ignores them in keys and values of infos (MPI 5.0 section 10), and in commands and their arguments (section
/// 11.8.2).
inline std::string_view stripped(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    return TextIn::trimmed(text);
}
inline TextIn word_in(const char* text, size_t length) {
    const std::string_view word = stripped({text, length});
    return {word.data(), word.size()};
}

/// Writes `text` into a Fortran variable: padded with blanks, or cut.
inline void fill(std::string_view text, char* place, size_t length) {
    const size_t shared = std::min(text.size(), length);
    std::memcpy(place, text.data(), shared);
    std::memset(place + shared, ' ', length - shared);
}

/// A text of at most `kMost` characters (including the terminating null) that the call writes. The program's variable stays unchanged if
/// the call writes nothing.
template <int kMost>
class TextOut {
  public:
    TextOut(char* place, size_t length) : place_(place), length_(length) { text_[0] = kUntouched; }
    TextOut(const TextOut&) = delete;
    ~TextOut() {
        if (text_[0] != kUntouched) fill(text_, place_, length_);
    }
    operator char*() { return text_; }

  private:
    static constexpr char kUntouched = '\1';
    char* const place_;
    const size_t length_;
    char text_[kMost];
};
template <int kMost>
TextOut<kMost> text_out(char* place, size_t length) {
    return TextOut<kMost>(place, length);
}

/// Indices that the call writes; they count from 1 in Fortran. After the call, `count` is the number of indices, at most `most`; it may be
/// MPI_UNDEFINED.
class IndicesMade {
  public:
    IndicesMade(int* place, const int* count, int most) : place_(place), count_(count), most_(most) {}
    IndicesMade(const IndicesMade&) = delete;
    ~IndicesMade() {
        const int count = count_ ? std::min(*count_, most_) : most_;
        for (int i = 0; i < count; ++i)
            if (place_[i] != MPI_UNDEFINED) ++place_[i];
    }
    operator int*() { return place_; }

  private:
    int* const place_;
    const int* const count_;
    const int most_;
};
inline IndicesMade index_made(int* place) { return {place, nullptr, 1}; }
inline IndicesMade indices_made(int* place, const int* count, int most) { return {place, count, most}; }

}  // namespace starling::compat
