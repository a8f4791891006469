// The interface by which a thread sleeps until a transport has work: Transport::wait_source(). A transport without one needs no descriptor,
// because its senders ring the doorbell of this process's region.
#pragma once

namespace starling::transport {

class WaitSource {
  public:
    /// Returns a descriptor that is readable when Transport::poll() would find something.
    virtual int wait_fd() const = 0;
    /// Makes wait_fd() signal every arrival, at some cost, until disarm(). Call it before sleeping on wait_fd(). Returns false if something
    /// has arrived already, so that the caller must not sleep.
    virtual bool arm() = 0;
    virtual void disarm() = 0;
    /// Reports that the caller found wait_fd() readable: the next poll() polls every source.
    virtual void woken() = 0;

  protected:
    ~WaitSource() = default;
};

}  // namespace starling::transport
