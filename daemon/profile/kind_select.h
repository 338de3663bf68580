// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// Whether there is a kind of that name; the empty name stands for the first,
// and "samples", as pprof calls it, for the first whose samples are counted.
// kInvalid, with the kinds there are, where there is none.
[[nodiscard]] ksym::Status KnowsKind(std::string_view name,
                                     const std::vector<SampleKind>& kinds);

// Puts the kind of that name first: it is the one that is shown. Fails as
// KnowsKind() does. O(samples).
[[nodiscard]] ksym::Status ShowKind(std::string_view name, Profile& profile);

// The place of the kind of that name, as above; for a raw profile as well.
[[nodiscard]] ksym::Result<SampleKindId> PlaceOfKind(
    std::string_view name, const std::vector<SampleKind>& kinds);
// Makes one kind of all where they are the states of threads; then each sample
// has a value. O(samples).
void SumThreadStates(Profile& profile);

// Whether more than the first kind's counts is in it.
bool HasSeveralValues(const Profile& profile);

// Keeps the samples of the first kind. Where they have values of their own
// these become their counts as well, and UnitName() says of what. The
// accounting stays that of the whole capture. O(samples).
void KeepFirstKind(Profile& profile);

}  // namespace profd
