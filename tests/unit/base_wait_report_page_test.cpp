// The page with a process's wait report is read whole or not at all, even if its writer dies.
#include "base/wait_report_page.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace starling {
namespace {

std::unique_ptr<WaitReportPage> empty_page() {
    auto page = std::make_unique<WaitReportPage>();
    *page = WaitReportPage{};
    return page;
}

WaitReportPage filled(uint64_t value) {
    WaitReportPage account{};
    auto* words = reinterpret_cast<unsigned char*>(&account);
    for (size_t i = 8; i < sizeof account; ++i) words[i] = static_cast<unsigned char>(value);
    return account;
}

TEST(WaitReportPage, AnUnwrittenReportIsNotRead) {
    WaitReportPage out;
    EXPECT_FALSE(copy_account(*empty_page(), out));
}

TEST(WaitReportPage, AWrittenReportIsRead) {
    const auto page = empty_page();
    WaitReportPage out;
    for (uint64_t i = 1; i < 5; ++i) {
        write_account(*page, filled(i));
        ASSERT_TRUE(copy_account(*page, out));
        EXPECT_EQ(out.written_at, i * 0x0101010101010101);
        EXPECT_EQ(out.operation[WaitReportPage::kOperations - 1].context, i * 0x0101010101010101);
    }
}

TEST(WaitReportPage, AWriterKilledWhileWritingLeavesNoReport) {
    const auto page = empty_page();
    WaitReportPage out;
    write_account(*page, filled(1));
    ++page->version;  // as if a report were being written
    EXPECT_FALSE(copy_account(*page, out));
    write_account(*page, filled(2));  // report of the next process that uses this page
    EXPECT_TRUE(copy_account(*page, out));
}

TEST(WaitReportPage, AReportOfAnotherLayoutIsNotRead) {
    const auto page = empty_page();
    WaitReportPage out;
    write_account(*page, filled(1));
    ++page->layout;
    EXPECT_FALSE(copy_account(*page, out));
}

TEST(WaitReportPage, AReportIsNeverReadInPart) {
    const auto page = empty_page();
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        for (uint64_t i = 1; !stop; ++i) {
            write_account(*page, filled(i % 200 + 1));
            std::this_thread::yield();
        }
    });
    int read = 0;
    while (read < 3000) {
        WaitReportPage out;
        if (!copy_account(*page, out)) continue;
        ++read;
        const auto* bytes = reinterpret_cast<const unsigned char*>(&out);
        for (size_t k = 8; k < sizeof out; ++k) ASSERT_EQ(bytes[k], bytes[8]) << k;
    }
    stop = true;
    writer.join();
}

}  // namespace
}  // namespace starling
