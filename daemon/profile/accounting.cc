#include "daemon/profile/accounting.h"

namespace profd {

std::string_view Name(LossCause cause) {
  switch (cause) {
    case LossCause::kCountsFull:
      return "counts-full";
    case LossCause::kRingFull:
      return "ring-full";
    case LossCause::kStackMissing:
      return "stack-missing";
  }
  return "unknown";
}

std::string_view Name(DamageCause cause) {
  switch (cause) {
    case DamageCause::kStackFault:
      return "stack-fault";
    case DamageCause::kCollision:
      return "collision";
    case DamageCause::kTruncated:
      return "truncated";
  }
  return "unknown";
}

Accounting& Accounting::operator+=(const Accounting& other) {
  taken += other.taken;
  emitted += other.emitted;
  for (size_t i = 0; i < kLossCauses; ++i) {
    lost_by_cause[i] += other.lost_by_cause[i];
  }
  for (size_t i = 0; i < kDamageCauses; ++i) {
    damaged_by_cause[i] += other.damaged_by_cause[i];
  }
  time_enabled_ns += other.time_enabled_ns;
  time_running_ns += other.time_running_ns;
  return *this;
}

}  // namespace profd
