#include "mpi/file/file_access.h"

#include <memory>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "collective/channel_exchange.h"
#include "collective/collective.h"
#include "collective/communicator/creation.h"
#include "file/representation.h"
#include "file/revocation.h"
#include "file/shared_pointer.h"
#include "file/two_phase.h"
#include "mpi/completion/request_handle.h"

namespace starling::mpi {

namespace {

using collective::Task;
using collective::View;
using datatype::Datatype;

int check_mode(const File& file, FileAccessKind kind) {
    if (kind.writes && !file.may_write())
        return fail(MPI_ERR_READ_ONLY, "the file was opened with MPI_MODE_RDONLY, so it cannot be written");
    if (!kind.writes && !file.may_read())
        return fail(MPI_ERR_ACCESS, "the file was opened with MPI_MODE_WRONLY, so it cannot be read");
    if (kind.pointer == FilePointer::explicit_offset || kind.pointer == FilePointer::individual)
        if (const int error = check_not_sequential(file)) return error;
    if (kind.together && file.split) return fail(MPI_ERR_OTHER, "a split collective operation on the file is in progress");
    return MPI_SUCCESS;
}

int check_memory(const AccessArguments& arguments, const Datatype* type) {
    if (!type || !type->committed) return fail(MPI_ERR_TYPE, "the datatype is null, was freed, or is not committed");
    if (arguments.count < 0 || !datatype::packed_size_fits(*type, arguments.count))
        return fail(MPI_ERR_COUNT, "count %lld is negative or too large", static_cast<long long>(arguments.count));
    if (!arguments.buffer && type->predefined && arguments.count > 0 && type->size > 0)
        return fail(MPI_ERR_BUFFER, "the buffer is a null pointer, but the count and the datatype specify data");
    return MPI_SUCCESS;
}

const Datatype& word() { return datatype::predefined(MPI_INT64_T); }

STARLING_STATE NoDestroy<RequestPool<FileRequest>> file_requests_storage;
constinit auto& file_requests = file_requests_storage.value;

void report_file_request(const progress::Request& request, progress::WaitReporter& teller) {
    const collective::OperationLabel& label = static_cast<const FileRequest&>(request).label;
    teller.of(label.function);
    if (label.channel) collective::report_wait(label, teller);
}
constinit const progress::RequestClass kFileRequest{
    .dispose = [](progress::Request& request) { file_requests.destroy(static_cast<FileRequest&>(request)); },
    .report_wait = report_file_request};

}  // namespace

FileAccess::~FileAccess() {
    if (memory_.type) datatype::release(*memory_.type);
    if (file_) view_.release();
}

/// Computes the length of the access in the file's representation, and checks that it is a whole number of etypes.
int FileAccess::measure() {
    bytes_ = static_cast<int64_t>(memory_.bytes());
    if (view_.representation) {
        int64_t size = 0;
        if (const int error = file::size_in_file(*view_.representation, *memory_.type, size)) return error;
        if (size < 0 || __builtin_mul_overflow(size, memory_.count, &bytes_))
            return fail(MPI_ERR_COUNT, "the data is too long for this data representation");
    }
    if (view_.etype->size > 0 && bytes_ % view_.etype->size != 0)
        return fail(MPI_ERR_TYPE, "%lld bytes of data are not a whole number of etypes, which have %lld bytes",
                    static_cast<long long>(bytes_), static_cast<long long>(view_.etype->size));
    return MPI_SUCCESS;
}

int FileAccess::check(const AccessArguments& arguments) {
    if (const int error = check_mode(*file_, kind_)) return error;
    const Datatype* type = datatype::from_handle(arguments.datatype);
    if (const int error = check_memory(arguments, type)) return error;
    datatype::retain(*type);
    memory_ = {arguments.buffer, arguments.count, type};
    return measure();
}

int FileAccess::take_position(MPI_Offset offset) {
    if (kind_.pointer == FilePointer::explicit_offset) {
        if (offset < 0 || __builtin_mul_overflow(offset, view_.etype->size, &position_))
            return fail(MPI_ERR_ARG, "the offset %lld is negative or too large", static_cast<long long>(offset));
    } else if (kind_.pointer == FilePointer::individual) {
        position_ = file_->position;
    }
    if (!file::is_within_offsets(view_, position_, bytes_))
        return fail(MPI_ERR_ARG, "the access would reach beyond the largest offset of a file");
    if (kind_.pointer == FilePointer::individual) {
        file_->position += bytes_;
        moved_pointer_ = true;
    }
    return MPI_SUCCESS;
}

int FileAccess::prepare(File& file, FileAccessKind kind, const AccessArguments& arguments, int error) {
    file_ = &file;
    view_ = file.view;
    view_.retain();
    kind_ = kind;
    if (kind.together) {
        collective::Exchange& exchange = collective::exchange_of(*file.comm);
        views_ = file::TransferViews::draw(exchange);
        if (kind.pointer == FilePointer::ordered)
            for (View& view : ordered_views_) view = View::all(exchange), exchange.last_was_own();
        number_ = exchange.calls();
    }
    error_ = error ? error : file::is_revoked(file) ? file::why_revoked() : check(arguments);
    if (!error_) error_ = take_position(arguments.offset);
    if (error_) {
        text_ = failure_text();
        bytes_ = 0;
    }
    return error_;
}

collective::OperationLabel FileAccess::label() const {
    if (!kind_.together) return {.function = calling};
    return {.function = calling,
            .channel = &file_->comm->collective,
            .number = number_,
            .tag = views_.ranges.tag,
            .tags = file::TransferViews::kTags + (kind_.pointer == FilePointer::ordered ? 2 : 0),
            .tag_bits = file::kTwoPhaseTags};
}

bool FileAccess::run_now(int& error) {
    const bool shared = kind_.pointer == FilePointer::shared || kind_.pointer == FilePointer::ordered;
    if (kind_.together || shared || view_.representation) return false;
    const file::FileTransfer transfer{position_, memory_, &view_, true};
    error = kind_.writes ? file::write_now(*file_, transfer, moved_) : file::read_now(*file_, transfer, moved_);
    moved_in_file_ = moved_;
    return true;
}

void FileAccess::settle_pointer() {
    if (!moved_pointer_ || kind_.writes || file_->position != position_ + bytes_) return;
    const int64_t unit = std::max<int64_t>(view_.etype->size, 1);
    file_->position = position_ + (moved_in_file_ + unit - 1) / unit * unit;
}

/// Finds this member's position in an ordered access: the members' parts follow each other in the order of ranks. The last member, which
/// knows the sum, moves the shared pointer.
Task FileAccess::find_ordered_position(View sum, View spread, int error) {
    int64_t end = 0;
    const collective::ErrorHere here(error);
    int failed = co_await collective::scan(sum, &bytes_, &end, 1, word(), datatype::predefined(MPI_SUM), false);
    int64_t start[2] = {0, failed};
    if (!failed && sum.me == sum.n - 1) start[1] = co_await file::add_to_shared_pointer(*file_, end, start[0]);
    const int lost = co_await collective::bcast(spread, start, 2, word(), spread.n - 1);
    if (!failed) failed = lost ? lost : static_cast<int>(start[1]);
    if (__builtin_add_overflow(start[0], end - bytes_, &position_)) position_ = -1;  // refused by the check of offsets
    co_return here.or_else(failed);
}

Task FileAccess::find_position(int error) {
    if (kind_.pointer == FilePointer::ordered) {
        error = co_await find_ordered_position(ordered_views_[0], ordered_views_[1], error);
    } else if (kind_.pointer == FilePointer::shared) {
        if (!error) error = co_await file::add_to_shared_pointer(*file_, bytes_, position_);
    } else {
        co_return error;
    }
    if (!error && !file::is_within_offsets(view_, position_, bytes_))
        error = fail(MPI_ERR_ARG, "the access would reach beyond the largest offset of a file");
    co_return error;
}

/// Stores how many bytes of the program's buffer `bytes` bytes of the file are.
void FileAccess::note_moved(int64_t bytes) {
    const file::Representation* representation = view_.representation;
    moved_ = moved_in_file_ = bytes;
    if (!representation) return;
    const int64_t element = memory_.count > 0 ? bytes_ / memory_.count : 0;
    moved_ = element > 0 ? bytes / element * memory_.type->size : 0;
}

Task FileAccess::transfer(int error, bool blocking) {
    const file::Representation* representation = view_.representation;
    file::FileTransfer transfer{position_, error ? rma::LocalBuffer{nullptr, 0, &datatype::predefined(MPI_BYTE)} : memory_,
                                &view_, blocking};
    std::unique_ptr<std::byte[]> converted;
    if (representation && !error && bytes_ > 0) {
        converted.reset(new (std::nothrow) std::byte[static_cast<size_t>(bytes_)]);
        if (!converted)
            error = fail(MPI_ERR_NO_MEM, "no memory for %lld bytes of converted data", static_cast<long long>(bytes_));
        if (!error && kind_.writes) error = file::convert_to_file(*representation, memory_, converted.get());
        transfer.memory = {converted.get(), error ? 0 : bytes_, &datatype::predefined(MPI_BYTE)};
    }
    int64_t moved = 0;
    if (kind_.together)
        error = kind_.writes ? co_await file::write_together(*file_, views_, transfer, error, moved)
                             : co_await file::read_together(*file_, views_, transfer, error, moved);
    else if (!error)
        error = kind_.writes ? co_await file::write_task(*file_, transfer, moved)
                             : co_await file::read_task(*file_, transfer, moved);
    note_moved(moved);
    if (converted && !kind_.writes && !error)
        error = file::convert_from_file(*representation, memory_, converted.get(), moved, moved_);
    co_return error;
}

Task FileAccess::run(bool blocking) {
    int error = error_ ? fail(error_, "%s", text_.c_str()) : MPI_SUCCESS;
    error = co_await find_position(error);
    co_return co_await transfer(error, blocking);
}

FileRequest* make_file_request(File& file) { return file_requests.create(file.comm, kFileRequest); }

void free_file_request(FileRequest& request) { file_requests.destroy(request); }

namespace {

Task run_request(FileRequest& request) {
    File& file = request.access.file();
    const int error = co_await request.access.run(false);
    request.outcome.bytes = static_cast<uint64_t>(request.access.moved());
    --file.open_requests;
    request.measured.end(file.name, request.access.moved());
    co_return error;
}

}  // namespace

void start_access(FileRequest& request) {
    File& file = request.access.file();
    ++file.open_requests;
    request.label = request.access.label();
    request.measured.begin();
    collective::start(run_request(request), request);
}

}  // namespace starling::mpi
