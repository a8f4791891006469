#include "base/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace starling {
namespace {

class MemoryLimit : public testing::Test {
  protected:
    void SetUp() override { std::filesystem::create_directories(root_); }
    void TearDown() override { std::filesystem::remove_all(root_); }

    void file(const std::string& name, const std::string& text) {
        const std::filesystem::path path = root_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    uint64_t limit(const std::string& groups) {
        file("groups", groups);
        return memory_limit((root_ / "groups").c_str(), root_.c_str());
    }

  private:
    std::filesystem::path root_ = testing::TempDir() + "memory-limit-" + std::to_string(getpid());
};

TEST_F(MemoryLimit, NoLimitIsSet) {
    EXPECT_EQ(limit("0::/a/b\n"), UINT64_MAX);
    EXPECT_EQ(memory_limit("/no/such/file", "/no/such/place"), UINT64_MAX);
    file("a/b/memory.max", "max\n");
    EXPECT_EQ(limit("0::/a/b\n"), UINT64_MAX);
}

TEST_F(MemoryLimit, TheSmallestLimitOfAllAncestorsApplies) {
    file("a/b/memory.max", "max\n");
    file("a/memory.max", "5000\n");
    EXPECT_EQ(limit("0::/a/b\n"), 5000);
    file("a/b/memory.max", "3000\n");
    EXPECT_EQ(limit("0::/a/b\n"), 3000);
    EXPECT_EQ(limit("0::/a\n"), 5000);
    EXPECT_EQ(limit("0::/\n"), UINT64_MAX);
}

// In a container the root may be a cgroup itself, whose name is visible only outside.
TEST_F(MemoryLimit, RootOfAContainer) {
    file("memory.max", "700\n");
    EXPECT_EQ(limit("0::/\n"), 700);
    EXPECT_EQ(limit("0::/system.slice/docker-1234.scope\n"), 700);
}

TEST_F(MemoryLimit, HierarchyPerController) {
    file("memory/job/memory.limit_in_bytes", "123456\n");
    file("memory/memory.limit_in_bytes", "9223372036854771712\n");
    file("job/memory.max", "1\n");  // ignored, because it belongs to another hierarchy
    EXPECT_EQ(limit("9:name=systemd:/job\n4:cpu,memory:/job\n3:cpuset:/\n"), 123456);
    EXPECT_EQ(limit("4:memoryless:/job\n"), UINT64_MAX);
}

}  // namespace
}  // namespace starling
