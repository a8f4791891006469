// The interfaces for memory that a peer accesses by RDMA, without the help of the memory's owner. message sends long messages by them, and
// rma carries out MPI_Put and MPI_Get.
#pragma once

#include <cstdint>

namespace starling::transport {

class Path;

/// Memory of this process that a peer will write once by RDMA, with a notification: NotifiedWrites::post(). Keep it alive until `then`
/// has been called or NotifiedWrites::cancel() has returned.
struct RdmaTarget {
    /// Called from inside poll(). `written`: all of the data has arrived. Otherwise the connection for the write has failed, and no write
    /// follows.
    void (*then)(RdmaTarget& self, bool written) = nullptr;
    void* place = nullptr;  ///< state owned by the transport; null: no write is expected
};

/// The way in which an RDMA write notifies its receiver.
enum class WriteNotice : uint8_t {
    separate_send,   ///< a send that is chained behind the write notifies the receiver
    write_with_imm,  ///< the write's immediate data notifies the receiver: one work request less for the device
};

/// Key by which peers access registered memory after its owner has sent it to them. It corresponds to an rkey, but is opaque to all but the
/// transport.
struct RemoteKey {
    uint64_t word[2] = {};
};

/// The completion of a put, get or write. Keep it, and the memory that the call names, until poll() has set `done`.
struct Completion {
    bool done = false;
    int error = 0;  ///< MPI_SUCCESS, or the reason (error class) why the operation was not carried out
    void (*then)(Completion& self) = nullptr;
    Completion* next = nullptr;  ///< link of the transport's list of completions
};

/// Memory that peers read and write: Transport::remote_memory(). Operations are ordered neither with each other nor with packets. To order
/// two operations, start the second one after the first has completed. An operation outside its registration completes with an error.
class RemoteMemory {
  public:
    /// Lets the peer access the memory by put() and get(), after the caller has sent it the key. `stays`: the memory stays mapped where it
    /// is until deregister(). Otherwise the registration is cached, so that registering the memory again is cheap. Returns null if
    /// registration is not possible now.
    virtual void* register_memory(Path& to, const void* memory, uint64_t bytes, bool stays, RemoteKey& key) = 0;
    /// Ends a registration, also after the path was destroyed. `at_once`: no access is possible afterwards, and one that is in progress
    /// fails. Otherwise the caller knows that none is in progress.
    virtual void deregister(void* registration, bool at_once) = 0;
    /// Returns whether register_memory() can succeed: a connection is open whose device accesses memory.
    virtual bool can_register(const Path& to) const = 0;
    /// Returns whether put and get with a key of the peer can be carried out now. They may still fail together with the connection.
    virtual bool can_access(const Path& of, const RemoteKey& key) const = 0;
    /// Start an access at `offset` of the registered memory. Return an MPI error class with failure_text() if it was not started.
    virtual int put(Path& to, const RemoteKey& key, uint64_t offset, const void* from, uint64_t bytes, Completion& done) = 0;
    virtual int get(Path& of, const RemoteKey& key, uint64_t offset, void* into, uint64_t bytes, Completion& done) = 0;

  protected:
    ~RemoteMemory() = default;
};

/// RDMA writes that notify the memory's owner: Transport::notified_writes().
class NotifiedWrites {
  public:
    /// Lets the peer write the memory once, by write(), after the caller has sent it the key and `word`. `word` must differ from those of
    /// the other RDMA targets of this peer. Returns false if this is not possible now.
    virtual bool post(Path& from, void* memory, uint64_t bytes, uint32_t word, RdmaTarget& target, RemoteKey& key) = 0;
    /// Cancels an RDMA target without calling `then`. `at_once`: the peer may be writing, and is stopped by this call. Otherwise the caller
    /// knows that the peer is not writing.
    virtual void cancel(RdmaTarget& target, bool at_once) = 0;
    /// Writes all of the memory that the peer has posted, and notifies the peer. Returns MPI_ERR_OTHER with failure_text() if nothing was
    /// written and nothing will be.
    virtual int write(Path& to, const RemoteKey& key, const void* from, uint64_t bytes, uint32_t word, WriteNotice notice,
                      Completion& done) = 0;

  protected:
    ~NotifiedWrites() = default;
};

}  // namespace starling::transport
