#include "launch/client/profile_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "launch/common/text.h"

namespace starling::launch {

namespace {

constexpr size_t kMostWaiting = 256 << 10;
constexpr std::chrono::milliseconds kLongestWait{500};

std::string first_line(const Options& options, const std::string& application) {
    char now[32];
    const time_t seconds = time(nullptr);
    tm utc{};
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    nlohmann::ordered_json command = nlohmann::ordered_json::array();
    for (const Program& program : options.programs) {
        if (!command.empty()) command.push_back(":");
        for (const std::string& argument : program.argv) command.push_back(argument);
    }
    const nlohmann::ordered_json line{{"kind", "profile"},  {"version", 1},   {"application", application},
                                      {"command", command}, {"started", now}, {"starling", STARLING_VERSION}};
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// Compresses the bytes to a complete gzip file; empty if memory is short.
std::string compress(std::string_view bytes) {
    constexpr int kGzip = 16;
    z_stream stream{};
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
    std::string out(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int result = deflate(&stream, Z_FINISH);
    out.resize(result == Z_STREAM_END ? stream.total_out : 0);
    deflateEnd(&stream);
    return out;
}

}  // namespace

std::string ProfileFile::open(const Options& options) {
    if (!options.profile) return {};
    const std::string application(base_name(options.programs[0].argv[0]));
    name_ = options.profile_file;
    if (name_.empty()) name_ = "starling-profile-" + application + "-" + std::to_string(getpid()) + ".jsonl.gz";
    compressed_ = name_.ends_with(".gz");
    fd_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) return "can't write the profile '" + name_ + "': " + std::strerror(errno);
    waiting_ = first_line(options, application);
    return {};
}

bool ProfileFile::write(std::string_view lines) {
    if (record_) record_->take(lines);
    if (fd_ < 0) return record_ != nullptr;
    waiting_ += lines;
    sites_.take(lines);
    if (waiting_.size() >= kMostWaiting || !loop_) {
        flush();
    } else if (timer_ == 0) {
        timer_ = loop_->after(kLongestWait, [this] {
            timer_ = 0;
            flush();
        });
    }
    return is_open();
}

void ProfileFile::flush() {
    if (fd_ < 0 || waiting_.empty()) return;
    bool written = true;
    // Write in parts, since zlib counts the bytes of a part in 32 bits.
    for (size_t at = 0; at < waiting_.size() && written; at += 16 * kMostWaiting) {
        const std::string_view part = std::string_view(waiting_).substr(at, 16 * kMostWaiting);
        written = compressed_ ? put(compress(part)) : put(part);
    }
    waiting_.clear();
    if (written) return;
    std::fprintf(stderr, "mpiexec: the profile '%s' is incomplete, because writing to it failed: %s\n", name_.c_str(),
                 std::strerror(errno));
    ::close(fd_);
    fd_ = -1;
}

bool ProfileFile::put(std::string_view bytes) {
    if (bytes.empty()) errno = ENOMEM;
    bool any = !bytes.empty();
    while (!bytes.empty() && any) {
        const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        any = n > 0;
        if (any) bytes.remove_prefix(static_cast<size_t>(n));
    }
    return any;
}

void ProfileFile::close() {
    if (loop_ && timer_ != 0) loop_->cancel(timer_);
    loop_ = nullptr;
    timer_ = 0;
    if (!kept_) remove();
    flush();
    if (fd_ < 0) return;
    waiting_ = sites_.lines();
    flush();
    if (fd_ < 0) return;
    complete_ = ::close(fd_) == 0;
    fd_ = -1;
}

// Deletes the file.
void ProfileFile::remove() {
    if (fd_ < 0) return;
    waiting_.clear();
    // The name may be that of a pipe or a device.
    struct stat opened, named;
    const bool is_own = fstat(fd_, &opened) == 0 && S_ISREG(opened.st_mode) && lstat(name_.c_str(), &named) == 0 &&
                        opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
    if (is_own) unlink(name_.c_str());
    ::close(fd_);
    fd_ = -1;
}

std::string ProfileFile::whereabouts() const {
    if (!complete_) return {};
    return "the profile is in " + name_ + "; to read it: starling profile show " + name_;
}

}  // namespace starling::launch
