// A file view (MPI 5.0 section 14.3): which bytes of a file a process sees, as a stream. Stream position 0 is the first byte of the first
// filetype's data after the displacement; holes of the filetype take no stream positions.
//
// Not thread-safe: needs the library's lock. Extents are handed out in increasing order of the stream, and for filetypes with
// displacements that never decrease (which MPI requires) also in increasing order of the file. Elements of a filetype whose extent is
// smaller than its data may interleave.
#pragma once

#include <cstdint>
#include <limits>

#include "datatype/datatype.h"
#include "datatype/walk.h"
#include "file/system/open_file.h"

namespace starling::file {

struct Representation;

/// A view. Holds references of its types (retain(), release()).
struct FileView {
    int64_t displacement = 0;
    /// The types as their data lies in the file; all offsets follow from them. They differ from the given types only if the representation
    /// converts. Never null after the file is open; MPI_BYTE at first.
    const datatype::Datatype* etype = nullptr;
    const datatype::Datatype* filetype = nullptr;
    /// The types passed to MPI_File_set_view, for MPI_File_get_view. Never null after the file is open.
    const datatype::Datatype* given_etype = nullptr;
    const datatype::Datatype* given_filetype = nullptr;
    const Representation* representation = nullptr;  ///< null: native or internal; no conversion
    bool internal = false;                           ///< whether the program named the representation "internal"
    /// Whether the stream is one run of the file from `displacement` on.
    bool contiguous() const { return filetype->contiguous && filetype->true_lb == 0; }

    void retain() const;
    void release() const;
};

/// Returns a view of the whole file as bytes, which holds no references.
FileView bytes_view();

/// Returns whether a type may be the filetype of a view: its displacements are not negative and never decrease.
bool is_ordered(const datatype::Datatype& filetype);

/// Returns whether all stream bytes [position, position + bytes) lie at file offsets that fit in 64 signed bits.
bool is_within_offsets(const FileView& view, int64_t position, int64_t bytes);

/// Returns the offset in the file of the stream's byte `position` (for MPI_File_get_byte_offset, and for the end of file).
int64_t file_offset(const FileView& view, int64_t position);

/// Returns the number of stream bytes before the file offset `offset`: the stream position of a file of that length (MPI_SEEK_END).
int64_t stream_position(const FileView& view, int64_t offset);

/// Iterates over the runs of the file that hold stream bytes [position, position + bytes), so that two of them can be walked in step. next()
/// returns runs of at most `most` bytes, adjacent ones merged, and {.., 0} at the end.
class ExtentCursor {
  public:
    ExtentCursor(const FileView& view, int64_t position, int64_t bytes);
    Extent next(int64_t most = std::numeric_limits<int64_t>::max());
    /// Position in the stream of the next run.
    int64_t position() const { return position_; }

  private:
    const FileView& view_;
    int64_t position_, end_;
    void fill();
    // a filled window of runs, so that a filetype's description is searched once per window
    static constexpr int kWindow = 64;
    iovec window_[kWindow];
    int at_ = 0, filled_ = 0;
};

/// Calls `take(Extent)` for the runs of the file that hold stream bytes [position, position + bytes), in order, adjacent ones merged;
/// `take` returns false to end the walk.
template <class Take>
void for_extents(const FileView& view, int64_t position, int64_t bytes, Take take) {
    ExtentCursor cursor(view, position, bytes);
    for (Extent run = cursor.next(); run.bytes > 0; run = cursor.next())
        if (!take(run)) return;
}

}  // namespace starling::file
