#include "comm/error_sentences.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/config.h"
#include "base/counter_start.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/state.h"
#include "mpi-ext.h"

namespace starling::comm {

namespace {

// A code with a sentence: bit 29, 22 bits of a serial, 7 bits of the error class. Codes that the program adds follow MPI_ERR_LASTCODE one by
// one and stay below. The sum with MPI_ERR_LASTCODE of MPICH's interface, 0x3fffffff, still fits in an int (compat/convert.h).
constexpr int kMark = 1 << 29;
constexpr int kClassBits = 7;
constexpr uint32_t kSerials = 1u << 22;
static_assert(MPIX_ERR_REVOKED < 1 << kClassBits, "the class must fit in the code");

constexpr size_t kSentenceRoom = 512;
static_assert(kSentenceRoom >= MPI_MAX_ERROR_STRING);

struct KeptSentence {
    int code;
    const char* function;
    char text[kSentenceRoom];
};

// Programs compare codes with the classes of fault tolerance, as Open MPI and the examples of ULFM's authors do. So the codes of these
// errors are their classes, and each class keeps only its latest sentence.
constexpr int kFirstLatest = MPIX_ERR_PROC_FAILED;
constexpr int kLatest = MPIX_ERR_REVOKED - kFirstLatest + 1;

bool keeps_latest(int code) { return code >= kFirstLatest && code < kFirstLatest + kLatest; }

STARLING_STATE Mutex sentence_mutex;
// The ring of sentences. Entry n has the serials that are n modulo kSentences; its memory is allocated at its first use. Allocated at once,
// the ring would cost the first failure 33 page faults, which delay all ranks that learn of a death.
STARLING_STATE KeptSentence* kept[kSentences];
STARLING_STATE uint32_t next_serial = kCounterStart % kSerials;
// Number of codes made so far, at most kSerials.
STARLING_STATE uint32_t made = 0;
// The latest sentences of the classes of fault tolerance.
STARLING_STATE KeptSentence* latest[kLatest];

uint32_t serial_of(int code) { return static_cast<uint32_t>(code) >> kClassBits & (kSerials - 1); }

// Returns whether a class can have sentences. Programs compare codes with the two classes that only say where to look further: MPI_Waitall
// returns MPI_ERR_IN_STATUS itself, and a status has MPI_ERR_PENDING itself (MPI 5.0 section 3.7.5).
bool can_have_sentence(int error_class) {
    return error_class > MPI_SUCCESS && error_class <= MPIX_ERR_REVOKED && error_class != MPI_ERR_IN_STATUS &&
           error_class != MPI_ERR_PENDING;
}

KeptSentence* entry_of(int code) {
    if (keeps_latest(code)) return latest[code - kFirstLatest];
    if (code < kMark) return nullptr;  // MPI_SUCCESS is not the code 0 of an unused entry
    KeptSentence* entry = kept[serial_of(code) % kSentences];
    return entry && entry->code == code ? entry : nullptr;
}

int new_code(int error_class) {
    const uint32_t serial = next_serial;
    next_serial = (next_serial + 1) % kSerials;
    made = std::min(made + 1, kSerials);
    return kMark | static_cast<int>(serial << kClassBits) | error_class;
}

}  // namespace

int keep_sentence(int error, const char* function) {
    const std::string_view text = failure_text();
    if (text.empty() || !can_have_sentence(error) || config().error_codes == ErrorCodes::classes) return error;
    const MutexGuard guard(sentence_mutex);
    KeptSentence*& entry = keeps_latest(error) ? latest[error - kFirstLatest] : kept[next_serial % kSentences];
    // Out of memory may be what has failed, so an allocation that fails is not an error.
    if (!entry) entry = new (std::nothrow) KeptSentence;
    if (!entry) return error;
    entry->code = keeps_latest(error) ? error : new_code(error);
    entry->function = function;
    const size_t length = std::min(text.size(), kSentenceRoom - 1);
    std::memcpy(entry->text, text.data(), length);
    entry->text[length] = '\0';
    return entry->code;
}

bool has_kept_sentence(int code) {
    if (code < kMark || code >= kMark << 1 || !can_have_sentence(class_of_sentence(code))) return false;
    const MutexGuard guard(sentence_mutex);
    const uint32_t age = (next_serial - 1 - serial_of(code)) % kSerials;
    return age < made;
}

int class_of_sentence(int code) { return code & ((1 << kClassBits) - 1); }

std::optional<FailedCall> failed_call(int code) {
    const MutexGuard guard(sentence_mutex);
    const KeptSentence* entry = entry_of(code);
    if (!entry) return {};
    return FailedCall{entry->function, entry->text};
}

}  // namespace starling::comm
