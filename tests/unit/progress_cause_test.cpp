// The cause to which the profile attributes a wait.
#include <gtest/gtest.h>

#include <vector>

#include "progress/wait_report.h"

namespace starling::progress {
namespace {

using Kind = WaitReportPage::OperationKind;
using profile::Cause;

struct Waited {
    std::vector<Kind> operations;
    bool collective = false;
};

Cause cause(const Waited& waited) {
    const WaitSite site{nullptr, Expected::soon, [](const void* argument, WaitReporter& teller) {
                            const auto& waited = *static_cast<const Waited*>(argument);
                            if (waited.collective) teller.in_collective(16, 1);
                            for (const Kind& kind : waited.operations) {
                                WaitReportPage::OperationEntry operation{};
                                operation.kind = kind;
                                teller.waits_for(operation, &kind);
                            }
                        }};
    return cause_of(site, &waited);
}

TEST(Cause, IsTheAwaitedOperation) {
    EXPECT_EQ(cause({{Kind::receive}}), Cause::late_sender);
    EXPECT_EQ(cause({{Kind::probe}}), Cause::late_sender);
    EXPECT_EQ(cause({{Kind::arriving}}), Cause::late_sender);
    EXPECT_EQ(cause({{Kind::send}}), Cause::late_receiver);
    EXPECT_EQ(cause({{Kind::send, Kind::receive}}), Cause::late_sender) << "the send may be complete at the next poll";
    EXPECT_EQ(cause({{Kind::receive}, true}), Cause::collective) << "whatever the collective does it with";
    EXPECT_EQ(cause({{Kind::member}, true}), Cause::collective);
    EXPECT_EQ(cause({}), Cause::other);
}

TEST(Cause, OfAWaitSiteWithoutADescriptionIsOther) { EXPECT_EQ(cause_of(WaitSite{}, nullptr), Cause::other); }

}  // namespace
}  // namespace starling::progress
