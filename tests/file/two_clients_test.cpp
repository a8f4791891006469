// The nfs driver, on two mounts of one folder that stand for two hosts: TEST_CLIENTS="FOLDER FOLDER". TEST_LOCKS=refused: the mounts refuse
// locks. Tests that need locks are replaced by one that expects the refusal.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "file/system/open_file.h"

using namespace starling::file;

namespace {

constexpr int kClients = 2;

bool locks_are_refused() {
    const char* const value = std::getenv("TEST_LOCKS");
    return value && std::string(value) == "refused";
}

std::string folder_of(int client) {
    const char* const folders = std::getenv("TEST_CLIENTS");
    std::istringstream words(folders ? folders : "");
    std::string folder;
    for (int i = 0; i <= client; ++i) words >> folder;
    return folder;
}

/// The same new file, opened on both mounts.
class TwoClients : public ::testing::Test {
  protected:
    void SetUp() override {
        for (int client = 0; client < kClients; ++client) files_[client] = open(client, client == 0);
    }
    void TearDown() override {
        for (auto& file : files_) EXPECT_EQ(file ? file->close() : 0, 0);
        remove_file(folder_of(0) + "/file");
    }
    static std::unique_ptr<OpenFile> open(int client, bool create) {
        OpenParams params;
        params.path = folder_of(client) + "/file";
        params.read = params.write = true;
        params.create = create;
        std::unique_ptr<OpenFile> file;
        EXPECT_EQ(open_file(params, file), 0) << params.path;
        return file;
    }
    void write(int client, int64_t offset, const std::string& bytes) {
        const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
        const Moved moved = files_[client]->write(offset, &piece, 1);
        EXPECT_EQ(moved.system_error, 0);
        EXPECT_EQ(moved.bytes, static_cast<int64_t>(bytes.size()));
    }
    std::string read(int client, int64_t offset, size_t most) {
        std::string bytes(most, '?');
        const iovec piece{bytes.data(), most};
        const Moved moved = files_[client]->read(offset, &piece, 1);
        EXPECT_EQ(moved.system_error, 0);
        return bytes.substr(0, static_cast<size_t>(moved.bytes));
    }
    /// As MPI programs do: sync, barrier, sync.
    void sync_all() {
        for (int turn = 0; turn < 2; ++turn)
            for (auto& file : files_) EXPECT_EQ(file->sync(), 0);
    }
    std::unique_ptr<OpenFile> files_[kClients];
};

TEST_F(TwoClients, FuseIsOpenedByTheNfsDriver) {
    for (auto& file : files_) {
        ASSERT_NE(file, nullptr);
        EXPECT_STREQ(file->driver(), "nfs");
        EXPECT_FALSE(file->coherent());
    }
}

TEST_F(TwoClients, WritesAreVisibleAfterSyncOnBothSides) {
    for (int round = 0; round < 20; ++round) {
        const int writer = round % kClients, reader = 1 - writer;
        read(reader, 0, 100000);  // fills the reader's cache
        const std::string bytes(static_cast<size_t>(1000 * (round + 1)), static_cast<char>('a' + round));
        write(writer, 500, bytes);
        sync_all();
        EXPECT_EQ(read(reader, 500, 100000), bytes);
        int64_t size = 0;
        EXPECT_EQ(files_[reader]->size(size), 0);
        EXPECT_EQ(size, 500 + static_cast<int64_t>(bytes.size()));
    }
}

TEST_F(TwoClients, OverwrittenBytesAreVisibleAfterSync) {
    write(0, 0, std::string(5000, 'a'));
    sync_all();
    EXPECT_EQ(read(1, 0, 6000), std::string(5000, 'a'));
    write(0, 0, std::string(5000, 'b'));
    sync_all();
    EXPECT_EQ(read(1, 0, 6000), std::string(5000, 'b'));
}

TEST_F(TwoClients, LengthIsThatOfTheServer) {
    for (const int64_t length : {100, 50, 5000}) {
        EXPECT_EQ(files_[0]->resize(length), 0);
        int64_t size = 0;
        EXPECT_EQ(files_[1]->size(size), 0);
        EXPECT_EQ(size, length);
    }
}

TEST_F(TwoClients, PreallocatedLengthIsThatOfTheServer) {
    EXPECT_EQ(files_[0]->preallocate(5000), 0);
    int64_t size = 0;
    EXPECT_EQ(files_[1]->size(size), 0);
    EXPECT_EQ(size, 5000);
}

TEST_F(TwoClients, LengthChangesAreVisibleAfterSync) {
    write(0, 0, std::string(10000, 'x'));
    sync_all();
    EXPECT_EQ(read(1, 0, 20000).size(), 10000u);
    EXPECT_EQ(files_[0]->resize(3), 0);
    sync_all();
    EXPECT_EQ(read(1, 0, 20000), "xxx");
    EXPECT_EQ(files_[1]->preallocate(5000), 0);
    sync_all();
    EXPECT_EQ(read(0, 0, 20000).size(), 5000u);
}

TEST_F(TwoClients, InterleavedBytesOfAPageAreKept) {
    std::mt19937 random(7);
    std::string expected(20000, '\0');
    write(0, 0, expected);
    sync_all();
    for (int round = 0; round < 12; ++round) {
        for (int client = 0; client < kClients; ++client) read(client, static_cast<int64_t>(random() % 15000), 4000);
        int client = 0;
        for (size_t at = 0; at < expected.size(); client = 1 - client) {
            const size_t bytes = std::min<size_t>(1 + random() % 700, expected.size() - at);
            const std::string text(bytes, static_cast<char>('A' + round + 30 * client));
            write(client, static_cast<int64_t>(at), text);
            expected.replace(at, bytes, text);
            at += bytes;
        }
        sync_all();
        for (int reader = 0; reader < kClients; ++reader)
            EXPECT_TRUE(read(reader, 0, expected.size() + 1) == expected) << "round " << round << ", client " << reader;
    }
}

TEST_F(TwoClients, ClosedFileIsSeenByALaterOpen) {
    write(0, 0, "before");
    EXPECT_EQ(files_[0]->close(), 0);
    files_[0].reset();
    const auto file = open(1, false);
    char bytes[10];
    const iovec piece{bytes, sizeof bytes};
    EXPECT_EQ(file->read(0, &piece, 1).bytes, 6);
}

TEST_F(TwoClients, RefusedLocksAreReported) {
    if (!locks_are_refused()) GTEST_SKIP() << "these mounts have locks";
    EXPECT_EQ(files_[0]->lock({0, 10}, true), ENOLCK);
    EXPECT_EQ(files_[1]->lock({0, 10}, false), ENOLCK);
}

int lock_patiently(OpenFile& file) {
    for (int turn = 0; turn < 300; ++turn)
        if (const int error = file.lock({0, sizeof(int64_t)}, true); error != EAGAIN) return error;
    return EAGAIN;
}

TEST_F(TwoClients, LockedUpdatesAreAtomic) {
    if (locks_are_refused()) GTEST_SKIP() << "these mounts have no locks";
    constexpr int64_t kUpdates = 60;
    std::vector<std::thread> threads;
    for (auto& file : files_)
        threads.emplace_back([&file] {
            for (int64_t i = 0; i < kUpdates; ++i) {
                ASSERT_EQ(lock_patiently(*file), 0);
                int64_t value = 0;
                const iovec piece{&value, sizeof value};
                file->read(0, &piece, 1);
                ++value;
                EXPECT_EQ(file->write(0, &piece, 1).bytes, 8);
                EXPECT_EQ(file->unlock({0, sizeof value}), 0);
            }
        });
    for (std::thread& thread : threads) thread.join();
    sync_all();
    int64_t value = 0;
    const iovec piece{&value, sizeof value};
    files_[0]->read(0, &piece, 1);
    EXPECT_EQ(value, kClients * kUpdates);
}

}  // namespace
