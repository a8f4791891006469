// Runs a fuzz target without libFuzzer. `target FILE...` replays files. `target SECONDS` mutates the target's seeds for that time, with the
// same random numbers in every run.
#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
const std::string* fuzz_seeds(size_t& count);

namespace {

void run(const std::string& input) {
    // A copy of exactly this size, so that a sanitizer sees a read past it.
    const auto copy = std::make_unique<uint8_t[]>(input.size());
    std::copy(input.begin(), input.end(), copy.get());
    LLVMFuzzerTestOneInput(copy.get(), input.size());
}

void mutate(std::string& input, std::mt19937_64& random) {
    for (int n = static_cast<int>(random() % 4) + 1; n > 0; --n) {
        const size_t at = input.empty() ? 0 : random() % input.size();
        switch (random() % 6) {
            case 0:
                if (!input.empty()) input[at] = static_cast<char>(random());
                break;
            case 1:
                if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
                break;
            case 2:
                input.insert(at, 1, static_cast<char>(random()));
                break;
            case 3:
                input.erase(at, random() % 8 + 1);
                break;
            case 4:
                if (!input.empty()) input[at] = random() % 2 ? '\xff' : '\0';
                break;
            case 5:
                input.insert(at, input.substr(random() % (input.size() + 1), random() % 32));
                break;
        }
        if (input.size() > 4096) input.resize(4096);
    }
}

}  // namespace

int main(int argc, char** argv) {
    struct stat status;
    if (argc > 1 && stat(argv[1], &status) == 0) {
        for (int i = 1; i < argc; ++i) {
            std::ifstream file(argv[i], std::ios::binary);
            run({std::istreambuf_iterator<char>(file), {}});
        }
        return 0;
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 1);
    size_t seeds = 0;
    const std::string* const seed = fuzz_seeds(seeds);
    std::mt19937_64 random(1);
    uint64_t runs = 0;
    for (; std::chrono::steady_clock::now() < end; ++runs) {
        std::string input = seed[random() % seeds];
        if (random() % 16 != 0) mutate(input, random);
        run(input);
    }
    std::printf("%llu inputs\n", static_cast<unsigned long long>(runs));
    return runs == 0;
}
