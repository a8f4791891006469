// Files of Lustre: coherent as POSIX describes, and spread over several servers in stripes.
#pragma once

#include "file/system/posix.h"

namespace starling::file {

class LustreFile : public PosixFile {
  public:
    explicit LustreFile(int descriptor);
    int lock(Extent range, bool exclusive) override;
    FileLayout layout() const override { return layout_; }
    const char* driver() const override { return "lustre"; }

  private:
    FileLayout layout_;
};

}  // namespace starling::file
