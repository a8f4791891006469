// A job segment as other programs view it: whatever bytes are in its header, its tables and its ranks' wait reports, a view ends safely. An
// input is a list of offsets and words, which overwrite those of a valid segment.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "base/wait_report_page.h"
#include "hang/judge.h"
#include "hang/report.h"
#include "job/segment_view.h"
#include "mpi.h"
#include "transport/shm/region.h"

using namespace starling;

namespace {

struct Word {
    uint32_t at;
    uint64_t value;
} __attribute__((packed));

constexpr uint64_t kNow = 5'000'000'000;

class Segment {
  public:
    Segment() {
        job::JobDescription description;
        description.draw();
        description.size = 6;
        description.hosts.resize(2);
        std::strcpy(description.hosts[0].name, "here");
        std::strcpy(description.hosts[1].name, "there");
        description.placements = {{0, 2, 3, 0, 0}, {1, 2, 3, 1, 0}};
        if (job::JobSegment::create(description, 0, segment_) != MPI_SUCCESS) std::abort();
        start_ = reinterpret_cast<std::byte*>(&segment_.header());
        tables_.assign(reinterpret_cast<char*>(start_), segment_.header().cells_offset);
        account_ = reinterpret_cast<std::byte*>(&shm::SegmentRegion(segment_.region(0)).account());
    }
    /// Overwrites one word: in the segment's header and tables if the offset is even, in rank 0's wait report if it is odd.
    void damage(const Word& word) {
        if (word.at % 2 == 0)
            std::memcpy(start_ + word.at / 2 % (tables_.size() - 8), &word.value, 8);
        else
            std::memcpy(account_ + word.at / 2 % (sizeof(WaitReportPage) - 8), &word.value, 8);
    }
    void look() {
        job::SegmentView sight;
        if (job::SegmentView::open(getpid(), segment_.fd(), false, sight) != MPI_SUCCESS) return;
        std::vector<hang::RankReport> ranks;
        for (uint32_t i = 0; i < sight.ranks(); ++i) {
            if (sight.rank(i) >= sight.size()) std::abort();
            hang::RankReport& rank = ranks.emplace_back();
            rank.process = {sight.id(), sight.rank(i)};
            rank.host = sight.my_host();
            rank.doing = hang::Doing::waiting;
            rank.pid = sight.cell(i).pid.load() + static_cast<int32_t>(sight.place(i));
            WaitReportPage account;
            if (i == 0 && copy_account(shm::SegmentRegion(sight.region(i)).account(), account))
                rank.report = hang::check(account, kNow);
        }
        for (const std::string& line : hang::judge(ranks, sight.id()).findings) expect_printable(line);
        for (const hang::RankReport& rank : ranks) expect_printable(hang::sentence(rank, sight.id()));
    }
    void repair() {
        std::memcpy(start_, tables_.data(), tables_.size());
        auto& account = *reinterpret_cast<WaitReportPage*>(account_);
        std::memset(static_cast<void*>(&account), 0, sizeof account);
        account.version = 2;
        account.layout = WaitReportPage::kLayout;
    }

  private:
    static void expect_printable(const std::string& text) {
        for (const char c : text)
            if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || c == 127) std::abort();
    }

    job::JobSegment segment_;
    std::byte *start_ = nullptr, *account_ = nullptr;
    std::string tables_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static Segment segment;
    segment.repair();
    for (; size >= sizeof(Word); data += sizeof(Word), size -= sizeof(Word)) {
        Word word;
        std::memcpy(&word, data, sizeof word);
        segment.damage(word);
    }
    segment.look();
    segment.repair();
    return 0;
}

const std::string* fuzz_seeds(size_t& count) {
    static std::string seeds[4];
    uint32_t state = 1;
    for (std::string& seed : seeds)
        for (uint32_t i = 0; i < 6; ++i) {
            state = state * 1664525 + 1013904223;
            const Word word{state >> 8, state >> 20};
            seed.append(reinterpret_cast<const char*>(&word), sizeof word);
        }
    count = std::size(seeds);
    return seeds;
}
