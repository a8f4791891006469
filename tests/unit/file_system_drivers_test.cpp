// Drivers of network file systems, on a local one: descriptors, layouts of Lustre, mount options that limit locks to one host.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "file/system/lock_scope.h"
#include "file/system/lustre_format.h"
#include "file/system/lustre_layout.h"
#include "file/system/open_file.h"
#include "temporary_folder.h"

using namespace starling::file;

namespace {

std::unique_ptr<OpenFile> open_by(const char* driver, const std::string& path, bool read = true, int mode = 0600) {
    OpenParams params;
    params.path = path;
    params.driver = driver;
    params.write = params.create = true;
    params.read = read;
    params.mode = mode;
    params.striping_unit = 1 << 20, params.striping_factor = 4;
    std::unique_ptr<OpenFile> file;
    EXPECT_EQ(open_file(params, file), 0);
    return file;
}

class Drivers : public ::testing::TestWithParam<const char*> {
  protected:
    TemporaryFolder folder_;
};

TEST_P(Drivers, WriteReadSizeSyncLockAndClose) {
    auto file = open_by(GetParam(), folder_.path("a"));
    EXPECT_STREQ(file->driver(), GetParam());
    for (const int64_t offset : {0, 1, 4095, 4096, 4097, 2 << 20}) {
        char text[] = "some bytes", back[sizeof text];
        const iovec pieces[2] = {{text, 4}, {text + 4, sizeof text - 4}};
        EXPECT_EQ(file->write(offset, pieces, 2).bytes, static_cast<int64_t>(sizeof text));
        const iovec whole{back, sizeof back};
        EXPECT_EQ(file->read(offset, &whole, 1).bytes, static_cast<int64_t>(sizeof text));
        EXPECT_STREQ(back, text);
        int64_t bytes = 0;
        EXPECT_EQ(file->size(bytes), 0);
        EXPECT_GE(bytes, offset + static_cast<int64_t>(sizeof text));
    }
    EXPECT_EQ(file->sync(), 0);
    EXPECT_TRUE(file->syncs_for_host());  // it is not on FUSE
    EXPECT_EQ(file->preallocate(3 << 20), 0);
    EXPECT_EQ(file->resize(100), 0);
    EXPECT_EQ(file->lock({0, 10}, true), 0);
    EXPECT_EQ(file->unlock({0, 10}), 0);
    EXPECT_GE(file->layout().unit, 4096);
    EXPECT_EQ(file->close(), 0);
}

TEST_P(Drivers, FileThatForbidsASecondOpenIsWritten) {
    auto file = open_by(GetParam(), folder_.path("a"), true, 0);
    char text[] = "x";
    const iovec piece{text, 1};
    EXPECT_EQ(file->write(7, &piece, 1).bytes, 1);
    EXPECT_EQ(file->close(), 0);
}

TEST_P(Drivers, WriteOnlyFileIsWrittenAndNotRead) {
    auto file = open_by(GetParam(), folder_.path("a"), false);
    char text[] = "x";
    const iovec piece{text, 1};
    EXPECT_EQ(file->write(7, &piece, 1).bytes, 1);
    EXPECT_EQ(file->read(7, &piece, 1).system_error, EBADF);
    EXPECT_EQ(file->sync(), 0);
    EXPECT_EQ(file->close(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, Drivers, ::testing::Values("posix", "nfs", "lustre"));

template <class Struct>
void append(std::vector<std::byte>& bytes, const Struct& value) {
    bytes.resize(bytes.size() + sizeof value);
    std::memcpy(bytes.data() + bytes.size() - sizeof value, &value, sizeof value);
}

LustreStripes stripes_of(uint32_t magic, uint32_t bytes, uint16_t count) {
    LustreStripes stripes;
    stripes.magic = magic, stripes.stripe_bytes = bytes, stripes.stripes = count;
    return stripes;
}

TEST(LustreLayout, PlainLayoutHasItsStripes) {
    for (const uint32_t magic : {kLustreMagicV1, kLustreMagicV3}) {
        std::vector<std::byte> bytes;
        append(bytes, stripes_of(magic, 4 << 20, 12));
        EXPECT_EQ(lustre_layout(bytes).unit, 4 << 20);
        EXPECT_EQ(lustre_layout(bytes).units, 12);
    }
}

TEST(LustreLayout, AllServersCountAsOneUntilTheyAreKnown) {
    std::vector<std::byte> bytes;
    append(bytes, stripes_of(kLustreMagicV1, 1 << 20, kLustreAllServers));
    EXPECT_EQ(lustre_layout(bytes).units, 1);
}

std::vector<std::byte> composite_of(const std::vector<LustreStripes>& parts) {
    std::vector<std::byte> bytes;
    LustreComposite composite{};
    composite.magic = kLustreMagicComposite;
    composite.components = static_cast<uint16_t>(parts.size());
    append(bytes, composite);
    for (size_t i = 0; i < parts.size(); ++i) {
        LustreComponent component{};
        component.offset =
            static_cast<uint32_t>(sizeof composite + parts.size() * sizeof component + i * sizeof(LustreStripes));
        append(bytes, component);
    }
    for (const LustreStripes& part : parts) append(bytes, part);
    return bytes;
}

TEST(LustreLayout, WidestComponentOfAProgressiveFileCounts) {
    const auto bytes = composite_of({stripes_of(kLustreMagicV1, 1 << 20, 1), stripes_of(kLustreMagicV1, 2 << 20, 16),
                                     stripes_of(kLustreMagicV3, 1 << 20, 4)});
    EXPECT_EQ(lustre_layout(bytes).unit, 2 << 20);
    EXPECT_EQ(lustre_layout(bytes).units, 16);
}

TEST(LustreLayout, BytesThatAreNoLayoutHaveNoUnit) {
    auto bytes = composite_of({stripes_of(kLustreMagicV1, 1 << 20, 1), stripes_of(kLustreMagicV1, 1 << 20, 2)});
    for (size_t length = 0; length < bytes.size(); ++length) {
        const FileLayout layout = lustre_layout(std::span(bytes).first(length));
        EXPECT_GE(layout.units, 1) << length;
        EXPECT_TRUE(layout.unit == 0 || length >= bytes.size() - sizeof(LustreStripes)) << length;
    }
    EXPECT_EQ(lustre_layout(std::vector<std::byte>(200)).unit, 0);
    EXPECT_EQ(lustre_layout(std::vector<std::byte>(200, std::byte{0xff})).unit, 0);
    LustreComponent wrong{};
    wrong.offset = 0xfffffff0;
    std::memcpy(bytes.data() + sizeof(LustreComposite), &wrong, sizeof wrong);
    EXPECT_EQ(lustre_layout(bytes).unit, 1 << 20);
}

TEST(LockScope, MountOptionsThatLimitLocksToTheHostAreFound) {
    constexpr char kMounts[] =
        "22 1 0:21 / /proc rw,nosuid - proc nolock rw\n"
        "30 1 0:40 / /a rw,relatime shared:1 - nfs4 s:/a rw,vers=4.2,local_lock=none,addr=1.2.3.4\n"
        "31 1 0:41 / /b rw,relatime - nfs s:/b rw,vers=3,nolock,proto=tcp,local_lock=all,addr=1.2.3.4\n"
        "32 1 0:42 / /c rw - nfs s:/c rw,local_lock=posix\n"
        "33 1 0:43 / /d rw - nfs s:/d rw,local_lock=flock,x=nolocks\n"
        "34 1 0:44 / /e rw - lustre 1@tcp:/e rw,localflock,lazystatfs\n"
        "35 1 0:45 / /f rw - lustre 1@tcp:/f rw,flock";
    EXPECT_FALSE(locks_end_at_host(kMounts, "0:40"));
    EXPECT_TRUE(locks_end_at_host(kMounts, "0:41"));
    EXPECT_TRUE(locks_end_at_host(kMounts, "0:42"));
    EXPECT_FALSE(locks_end_at_host(kMounts, "0:43"));
    EXPECT_TRUE(locks_end_at_host(kMounts, "0:44"));
    EXPECT_FALSE(locks_end_at_host(kMounts, "0:45"));
    EXPECT_FALSE(locks_end_at_host(kMounts, "0:4"));
    EXPECT_FALSE(locks_end_at_host("", "0:4"));
}

}  // namespace
