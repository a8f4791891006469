// A folder for the files of one test, removed with everything in it at the end.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = ::testing::TempDir() + "starling-test-XXXXXX";
        if (::mkdtemp(name.data())) folder_ = name;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        if (!folder_.empty()) std::filesystem::remove_all(folder_);
    }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }

  private:
    std::string folder_;
};
