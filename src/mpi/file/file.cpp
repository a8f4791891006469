#include "mpi/file/file.h"

#include <cstring>
#include <functional>
#include <string>

#include "base/error.h"
#include "collective/agreement.h"
#include "collective/collective_request.h"
#include "collective/comm_call.h"
#include "collective/communicator/creation.h"
#include "file/representation.h"
#include "file/revocation.h"
#include "file/shared_pointer.h"
#include "file/system_call.h"
#include "mpi-ext.h"
#include "mpi/common/handles.h"
#include "mpi/file/file_access.h"
#include "mpi/file/file_check.h"
#include "profile/files.h"
#include "progress/engine.h"

namespace starling::mpi {

namespace {

using datatype::Datatype;
using datatype::TypeRef;
using file::FileView;

int64_t units(const FileView& view, int64_t position) {
    const int64_t size = view.etype->size;
    return size > 0 ? (position + size - 1) / size : 0;
}

int bad_info() { return fail(MPI_ERR_INFO, "the info object is not valid; was it freed?"); }

int bad_offset(MPI_Offset offset) {
    return fail(MPI_ERR_ARG, "the offset %lld is negative or too large", static_cast<long long>(offset));
}

int check_name(const char* filename) {
    if (!filename) return null_pointer("filename");
    return *filename ? MPI_SUCCESS : fail(MPI_ERR_BAD_FILE, "the file name is empty");
}

int check_idle(const File& file, uint32_t blocking_accesses = 0) {
    if (!file.split && file.open_requests + blocking_accesses == 0) return MPI_SUCCESS;
    return fail(MPI_ERR_OTHER, "operations on the file are in progress; complete them before %s", calling);
}

/// Waits until the non-blocking and split operations in progress, which use the present view and hints, have moved their data.
void wait_until_quiet(const File& file) {
    progress::wait_until([&file] { return file.open_requests == 0; });
}

/// Ends the operations of a revoked file, which all end soon. A split one is freed, since no second half can follow.
void end_operations(File& file) {
    wait_until_quiet(file);
    if (!file.split) return;
    free_file_request(*static_cast<FileRequest*>(file.split));
    file.split = nullptr;
}

int check_whence(int whence) {
    if (whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END) return MPI_SUCCESS;
    return fail(MPI_ERR_ARG, "%d is not MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END", whence);
}

/// Computes the stream position that a seek leads to, from the current one.
int find_position(File& file, MPI_Offset offset, int whence, int64_t current, int64_t& position) {
    if (const int error = check_whence(whence)) return error;
    const FileView& view = file.view;
    int64_t base = 0, end = 0;
    if (whence == MPI_SEEK_END) {
        if (const int error = file::size_of(file, end)) return error;
        base = units(view, file::stream_position(view, end));
    } else if (whence == MPI_SEEK_CUR) {
        base = units(view, current);
    }
    if (__builtin_add_overflow(base, offset, &base) || base < 0 || __builtin_mul_overflow(base, view.etype->size, &position) ||
        !file::is_within_offsets(view, position, 1))
        return fail(MPI_ERR_ARG, "the offset %lld leads to a position that is negative or too large",
                    static_cast<long long>(offset));
    return MPI_SUCCESS;
}

int read_pointer(File& file, int64_t& position) { return collective::run(file::add_to_shared_pointer(file, 0, position)); }

/// The step of a collective call after which all members know that the file or the shared pointer has changed at rank 0.
int finish_at_root(File& file, int error, const char* what) { return file::agree_on(file, {}, error, what); }

/// Runs a call for the file, which the profile counts.
template <class Call>
int measure(const File& file, const Call& call) {
    profile::FileCall measured;
    measured.begin();
    const int error = call();
    measured.end(file.name, 0);
    return error;
}

/// Performs a change of the file at rank 0, once all members agree on its argument. Collective.
template <class Change>
int change_at_root(File& file, int64_t value, int error, const char* what, const Change& change) {
    // Writes that are still in a member's cache would otherwise reach the file after the change, and make it longer again.
    if (!error && file.caching != file::Caching::none)
        if (const int failed = file::system_call([&] { return file.system->sync(); }))
            error = file::fail_of(failed, "synchronize", file.name);
    if (const int failed = file::agree_on(file, {{value}}, error, what)) return failed;
    int result = MPI_SUCCESS;
    if (file.comm->rank == 0) {
        const int failed = file::system_call([&] { return change(*file.system); });
        if (failed) result = file::fail_of(failed, "change the size of", file.name);
    }
    if (const int failed = finish_at_root(file, result, what)) return failed;
    if (file.caching == file::Caching::none) return MPI_SUCCESS;
    // A host with a cache of its own asks for the new size. Reads beyond a cut would otherwise find the old data.
    int64_t bytes = 0;
    return finish_at_root(file, file::size_of(file, bytes), what);
}

int check_size(const File& file, MPI_Offset size) {
    if (size < 0) return fail(MPI_ERR_ARG, "the size %lld is negative", static_cast<long long>(size));
    if (!file.may_write()) return fail(MPI_ERR_READ_ONLY, "the file was opened with MPI_MODE_RDONLY");
    return file.split ? fail(MPI_ERR_OTHER, "a split collective operation on the file is in progress") : MPI_SUCCESS;
}

/// A view under construction, with the arguments of MPI_File_set_view.
struct NewView {
    FileView view;
    TypeRef etype, filetype;  ///< types in the form that they have in the file
    comm::Info info;
    bool at_pointer = false;  ///< whether the displacement is MPI_DISPLACEMENT_CURRENT
};

int check_types(MPI_Datatype etype, MPI_Datatype filetype, FileView& view) {
    view.given_etype = datatype::from_handle(etype);
    view.given_filetype = datatype::from_handle(filetype);
    if (!view.given_etype || !view.given_etype->committed) return fail(MPI_ERR_TYPE, "the etype is not a committed datatype");
    if (!view.given_filetype || !view.given_filetype->committed)
        return fail(MPI_ERR_TYPE, "the filetype is not a committed datatype");
    return MPI_SUCCESS;
}

/// Finds the representation, and the types in the form that they have in it.
int translate_types(const char* datarep, NewView& made) {
    FileView& view = made.view;
    const size_t length = strnlen(datarep, MPI_MAX_DATAREP_STRING);
    if (const int error = file::find_representation({datarep, length}, view.representation)) return error;
    view.internal = std::strcmp(datarep, "internal") == 0;
    view.etype = view.given_etype;
    view.filetype = view.given_filetype;
    if (!view.representation) return MPI_SUCCESS;
    if (const int error = file::type_in_file(*view.representation, *view.given_etype, made.etype)) return error;
    if (const int error = file::type_in_file(*view.representation, *view.given_filetype, made.filetype)) return error;
    view.etype = made.etype.get();
    view.filetype = made.filetype.get();
    return MPI_SUCCESS;
}

int check_displacement(const File& file, MPI_Offset disp, NewView& made) {
    made.at_pointer = disp == MPI_DISPLACEMENT_CURRENT;
    if (made.at_pointer && !file.sequential())
        return fail(MPI_ERR_ARG, "MPI_DISPLACEMENT_CURRENT requires a file that was opened with MPI_MODE_SEQUENTIAL");
    if (!made.at_pointer && disp < 0) return bad_offset(disp);
    if (!made.at_pointer && file.sequential())
        return fail(MPI_ERR_ARG, "a file that was opened with MPI_MODE_SEQUENTIAL requires MPI_DISPLACEMENT_CURRENT");
    made.view.displacement = made.at_pointer ? 0 : disp;
    return MPI_SUCCESS;
}

int check_view(const File& file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info,
               NewView& made) {
    if (!datarep) return null_pointer("datarep");
    if (!comm::read_info(info, made.info)) return bad_info();
    if (const int error = check_displacement(file, disp, made)) return error;
    if (const int error = check_types(etype, filetype, made.view)) return error;
    if (const int error = translate_types(datarep, made)) return error;
    const FileView& view = made.view;
    if (view.etype->size > 0 && view.filetype->size % view.etype->size != 0)
        return fail(MPI_ERR_TYPE, "the filetype has %lld bytes of data, which is not a multiple of the etype's %lld",
                    static_cast<long long>(view.filetype->size), static_cast<long long>(view.etype->size));
    if (!file::is_ordered(*view.filetype))
        return fail(MPI_ERR_TYPE, "the filetype has displacements that are negative or decrease");
    if (file.split) return fail(MPI_ERR_OTHER, "a split collective operation on the file is in progress");
    return MPI_SUCCESS;
}

/// Determines the displacement MPI_DISPLACEMENT_CURRENT on all members: rank 0 reads the shared pointer.
int current_displacement(File& file, int64_t& displacement) {
    int64_t position = 0;
    const int error = file.comm->rank == 0 ? read_pointer(file, position) : MPI_SUCCESS;
    displacement = file::file_offset(file.view, position);
    collective::CommCall call(*file.comm, true);
    const int failed = collective::run(call, collective::bcast(call, &displacement, 1, datatype::predefined(MPI_INT64_T), 0));
    return error ? error : failed;
}

/// Sets the view on all members, and the shared pointer to 0. Between the two agreements no member uses the shared pointer.
int set_view(File& file, NewView& made, const char* datarep, int error) {
    const int64_t values[] = {error ? 0 : made.view.etype->extent,
                              error ? 0 : static_cast<int64_t>(std::hash<std::string_view>()(datarep)), made.at_pointer};
    int64_t reset = file.shared->used;
    if (const int failed = file::agree_on(file, values, error, "etype extent and data representation", &reset)) return failed;
    if (made.at_pointer) error = current_displacement(file, made.view.displacement);
    if (reset || made.at_pointer) {
        if (!error && file.comm->rank == 0) error = file::store_shared_pointer(file, 0);
        error = finish_at_root(file, error, "shared file pointer");
        file.shared->used = false;
    }
    if (error) return error;
    made.view.retain();
    file::set_view(file, made.view);
    return MPI_SUCCESS;
}

MPI_Datatype give_handle(const Datatype* type) {
    if (!type->permanent) {
        datatype::retain(*type);
        ++const_cast<Datatype*>(type)->handles;
    }
    return datatype::to_handle(type);
}

}  // namespace

int raise_error(File& file, int error) {
    // A collective operation of the file's communicator has the text of communicators.
    if (error == MPIX_ERR_REVOKED) error = file::why_revoked();
    return raise_through(file.errhandler, comm::HandlerKind::file, {.file = file::to_handle(&file)}, error);
}

int raise_without_file(int error) {
    if (error == MPI_SUCCESS) return error;
    return raise_through(comm::file_handler, comm::HandlerKind::file, {.file = MPI_FILE_NULL}, error);
}

int bad_file(MPI_File handle) {
    if (phase != LibraryPhase::running) return not_running();
    const char* what = handle == MPI_FILE_NULL ? "the file is MPI_FILE_NULL" : "the file is not valid; was it closed?";
    return raise_without_file(fail(MPI_ERR_FILE, "%s", what));
}

int null_argument(File& file, const char* name) { return raise(file, null_pointer(name)); }

int check_not_sequential(const File& file) {
    if (!file.sequential()) return MPI_SUCCESS;
    return fail(MPI_ERR_UNSUPPORTED_OPERATION,
                "the file was opened with MPI_MODE_SEQUENTIAL, which allows only functions that use the shared file pointer");
}

int File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
    MakingLock lock;
    if (phase != LibraryPhase::running) return not_running();
    comm::Comm* c = comm::from_handle(comm);
    if (!c) return raise_without_file(fail(MPI_ERR_COMM, "the communicator is null or not valid; was it freed?"));
    if (c->is_inter) return raise_without_file(fail(MPI_ERR_COMM, "an inter-communicator is not allowed here"));
    file::OpenArguments arguments;
    arguments.amode = amode;
    arguments.error = fh ? check_name(filename) : null_pointer("fh");
    if (!arguments.error) arguments.name = filename;
    if (!comm::read_info(info, arguments.info) && !arguments.error) arguments.error = bad_info();
    if (!arguments.error) arguments.error = file::check_amode(amode);
    const comm::ReferenceGuard kept(c);
    profile::FileCall measured;
    measured.begin();
    File* opened = nullptr;
    if (const int error = file::open(*c, arguments, opened)) return raise_without_file(error);
    measured.end(opened->name, 0);
    *fh = file::to_handle(opened);
    return MPI_SUCCESS;
}

int File_close(MPI_File* fh) {
    Lock lock;
    if (!fh) return raise_without_file(null_pointer("fh"));
    File* f = file::from_handle(*fh);
    if (!f) return bad_file(*fh);
    profile::FileCall measured;
    measured.begin();
    const std::string name = f->name;
    comm::Errhandler* handler = comm::retain_from(f->errhandler);
    bool closed = false;
    int error = MPI_SUCCESS;
    do {  // again if the file was revoked meanwhile
        if (file::is_revoked(*f)) end_operations(*f);
        error = file::close(*f, check_idle(*f, f->blocking_accesses), closed);
    } while (!closed && error == MPI_ERR_OTHER && file::is_revoked(*f) && !f->survives);
    if (!closed) {
        handler->release();
        return raise(*f, error);
    }
    measured.end(name, 0);
    if (error) error = raise_through(handler, comm::HandlerKind::file, {.file = MPI_FILE_NULL}, error);
    handler->release();
    *fh = MPI_FILE_NULL;
    return error;
}

int File_delete(const char* filename, MPI_Info info) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    if (const int error = check_name(filename)) return raise_without_file(error);
    comm::Info hints;
    if (!comm::read_info(info, hints)) return raise_without_file(bad_info());
    std::string name = filename;
    file::split_prefix(name);
    const int failed = file::system_call([&] { return file::remove_file(name); });
    return failed ? raise_without_file(file::fail_of(failed, "delete", name)) : MPI_SUCCESS;
}

int File_set_size(MPI_File fh, MPI_Offset size) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    const auto change = [=](file::OpenFile& system) { return system.resize(size); };
    return raise(*f, measure(*f, [&] { return change_at_root(*f, size, check_size(*f, size), "size", change); }));
}

int File_preallocate(MPI_File fh, MPI_Offset size) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    const auto change = [=](file::OpenFile& system) { return system.preallocate(size); };
    return raise(*f, measure(*f, [&] { return change_at_root(*f, size, check_size(*f, size), "size", change); }));
}

int File_get_size(MPI_File fh, MPI_Offset* size) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!size) return null_argument(*f, "size");
    int64_t bytes = 0;
    const int error = file::size_of(*f, bytes);
    if (!error) *size = bytes;
    return raise(*f, error);
}

int File_get_group(MPI_File fh, MPI_Group* group) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!group) return null_argument(*f, "group");
    *group = comm::add_handle(f->comm->local_group().retain());
    return MPI_SUCCESS;
}

int File_get_amode(MPI_File fh, int* amode) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!amode) return null_argument(*f, "amode");
    *amode = f->amode;
    return MPI_SUCCESS;
}

int File_set_info(MPI_File fh, MPI_Info info) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    comm::Info hints;
    wait_until_quiet(*f);
    const int error = comm::read_info(info, hints) ? MPI_SUCCESS : bad_info();
    if (const int failed = file::agree_on(*f, {}, error, "info")) return raise(*f, failed);
    return raise(*f, file::share_hints(*f, hints));
}

int File_get_info(MPI_File fh, MPI_Info* info_used) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!info_used) return null_argument(*f, "info_used");
    comm::Info* info = comm::make_info();
    file::describe(f->hints, f->layout, f->system->driver(), f->comm->local_group().size(), !file::caches_differ(*f), *info);
    *info_used = comm::to_handle(info);
    return MPI_SUCCESS;
}

int File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    NewView made;
    wait_until_quiet(*f);  // the standard lets programs wait for them, but some that run on ROMIO don't
    const int error = check_view(*f, disp, etype, filetype, datarep, info, made);
    return raise(*f, set_view(*f, made, datarep, error));
}

int File_get_view(MPI_File fh, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype, char* datarep) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!disp || !etype || !filetype || !datarep)
        return null_argument(*f, !disp ? "disp" : !etype ? "etype" : !filetype ? "filetype" : "datarep");
    const FileView& view = f->view;
    *disp = view.displacement;
    *etype = give_handle(view.given_etype);
    *filetype = give_handle(view.given_filetype);
    const std::string name = view.representation ? view.representation->name : view.internal ? "internal" : "native";
    std::memcpy(datarep, name.c_str(), name.size() + 1);
    return MPI_SUCCESS;
}

int File_seek(MPI_File fh, MPI_Offset offset, int whence) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    int64_t position = 0;
    int error = check_not_sequential(*f);
    if (!error) error = find_position(*f, offset, whence, f->position, position);
    if (!error) f->position = position;
    return raise(*f, error);
}

int File_seek_shared(MPI_File fh, MPI_Offset offset, int whence) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    const int64_t values[] = {offset, whence};
    int error = check_whence(whence);
    if (!error) error = check_not_sequential(*f);
    if (const int failed = file::agree_on(*f, values, error, "offset and whence")) return raise(*f, failed);
    if (f->comm->rank == 0) {
        int64_t current = 0, position = 0;
        error = read_pointer(*f, current);
        if (!error) error = find_position(*f, offset, whence, current, position);
        if (!error) error = file::store_shared_pointer(*f, position);
    }
    f->shared->used = true;
    return raise(*f, finish_at_root(*f, error, "shared file pointer"));
}

int File_get_position(MPI_File fh, MPI_Offset* offset) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!offset) return null_argument(*f, "offset");
    if (const int error = check_not_sequential(*f)) return raise(*f, error);
    *offset = units(f->view, f->position);
    return MPI_SUCCESS;
}

int File_get_position_shared(MPI_File fh, MPI_Offset* offset) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!offset) return null_argument(*f, "offset");
    if (const int error = check_not_sequential(*f)) return raise(*f, error);
    int64_t position = 0;
    if (const int error = read_pointer(*f, position)) return raise(*f, error);
    *offset = units(f->view, position);
    return MPI_SUCCESS;
}

int File_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset* disp) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!disp) return null_argument(*f, "disp");
    if (const int error = check_not_sequential(*f)) return raise(*f, error);
    int64_t position = 0;
    if (offset < 0 || __builtin_mul_overflow(offset, f->view.etype->size, &position) ||
        !file::is_within_offsets(f->view, position, 1))
        return raise(*f, bad_offset(offset));
    *disp = file::file_offset(f->view, position);
    return MPI_SUCCESS;
}

int File_get_type_extent(MPI_File fh, MPI_Datatype datatype, MPI_Count* extent) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!extent) return null_argument(*f, "extent");
    const Datatype* type = datatype::from_handle(datatype);
    if (!type) return raise(*f, fail(MPI_ERR_TYPE, "the datatype is null or not valid; was it freed?"));
    TypeRef form;
    if (f->view.representation) {
        if (const int error = file::type_in_file(*f->view.representation, *type, form)) return raise(*f, error);
        type = form.get();
    }
    *extent = type->extent;
    return MPI_SUCCESS;
}

int File_set_atomicity(MPI_File fh, int flag) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    const int wrong = flag ? file::check_locks(*f) : MPI_SUCCESS;
    const int error = file::agree_on(*f, {{int64_t{flag != 0}}}, wrong, "flag");
    if (!error) f->atomic = flag != 0;
    return raise(*f, error);
}

int File_get_atomicity(MPI_File fh, int* flag) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!flag) return null_argument(*f, "flag");
    *flag = f->atomic;
    return MPI_SUCCESS;
}

int File_sync(MPI_File fh) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    return raise(*f, measure(*f, [&] { return file::sync(*f, check_idle(*f)); }));
}

int File_toint(MPI_File file) {
    Lock lock;
    return to_int(file, file::from_handle(file));
}

MPI_File File_fromint(int file) {
    Lock lock;
    return from_int<MPI_File>(file, file::file_at, MPI_FILE_NULL);
}

}  // namespace starling::mpi
