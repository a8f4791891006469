// The interface to the memory that the ranks of a host share, for rooms above link: regions, pages of windows and symmetric heaps, kernel
// copies, and the words by which two ranks share a copy or cancel a message. These rooms may include transport/shm only through this header
// (src/rooms.txt).
#pragma once

#include "transport/shm/kernel_copy.h"
#include "transport/shm/outbox.h"
#include "transport/shm/outbox_readers.h"
#include "transport/shm/pages.h"
#include "transport/shm/region.h"
#include "transport/shm/shared_heap.h"

namespace starling::link {

using shm::AgreementWords;
using shm::allocate_exchanged;
using shm::Borrowers;
using shm::cancel_verdict;
using shm::claim_chunk;
using shm::claimed_from_back;
using shm::close_verdict;
using shm::copy_blocks;
using shm::free_exchanged;
using shm::kAgreementLeavers;
using shm::kAgreementSlots;
using shm::kCollectiveBytes;
using shm::kOutboxBytes;
using shm::kRingSlots;
using shm::kSplitSlots;
using shm::match_verdict;
using shm::open_split;
using shm::open_verdict;
using shm::Pages;
using shm::PagesName;
using shm::Presence;
using shm::read_remote;
using shm::SegmentRegion;
using shm::split_chunk;
using shm::SplitSlot;
using shm::SymmetricMemory;
using shm::verdict_key;
using shm::was_cancelled;
using shm::write_remote;

}  // namespace starling::link
