#include "stages/network/network_admission.hpp"

#include <algorithm>

namespace slidestream {

bool NetworkAdmission::take(Place& place, const Wake& wake) {
  {
    const std::lock_guard lock(mutex_);
    if (place.taken || place.aside) return true;
    if (taken_ < places_) {
      ++taken_;
      place.taken = true;
      return true;
    }
    waiting_.push_back(wake);
    if (!stands_still()) return false;
  }
  make_way_();
  return false;
}

void NetworkAdmission::all_given(Place& place) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard lock(mutex_);
    if (!place.taken || !place.small || std::ranges::find(next_aside_, &place) != next_aside_.end()) return;
    next_aside_.push_back(&place);
    step_aside();
    if (taken_ < places_) wakes.swap(waiting_);
  }
  for (const Wake& wake : wakes) wake();
}

void NetworkAdmission::park(Place& place, bool parked) {
  std::vector<Wake> wakes;
  bool still = false;
  {
    const std::lock_guard lock(mutex_);
    if (place.parked == parked) return;
    place.parked = parked;
    (place.aside ? parked_aside_ : parked_) += parked ? 1 : -1;
    if (place.taken && !place.small) {
      std::erase(next_aside_, &place);
      if (parked) next_aside_.push_back(&place);
    }
    step_aside();
    if (taken_ < places_) wakes.swap(waiting_);
    still = stands_still();
  }
  for (const Wake& wake : wakes) wake();
  if (still) make_way_();
}

void NetworkAdmission::leave(Place& place) {
  std::vector<Wake> wakes;
  bool still = false;
  {
    const std::lock_guard lock(mutex_);
    if (place.aside) {
      --aside_;
      parked_aside_ -= place.parked ? 1 : 0;
      (place.small ? tiles_aside_ : large_aside_) -= place.small ? place.tiles : 1;
    } else if (place.taken) {
      --taken_;
      parked_ -= place.parked ? 1 : 0;
      std::erase(next_aside_, &place);
    }
    place.taken = place.aside = place.parked = false;
    step_aside();
    if (taken_ < places_) wakes.swap(waiting_);
    still = stands_still();
  }
  for (const Wake& wake : wakes) wake();
  if (still) make_way_();
}

void NetworkAdmission::step_aside() {
  std::erase_if(next_aside_, [this](Place* place) {
    if (!has_room(*place)) return false;
    place->taken = false;
    place->aside = true;
    --taken_;
    ++aside_;
    if (place->parked) {
      --parked_;
      ++parked_aside_;
    }
    (place->small ? tiles_aside_ : large_aside_) += place->small ? place->tiles : 1;
    return true;
  });
}

bool NetworkAdmission::has_room(const Place& place) const noexcept {
  if (tiles_ == 0 || aside_ == most_aside) return false;
  return place.small ? tiles_aside_ + place.tiles <= tiles_ : large_aside_ < most_large_aside;
}

/// Whether one that has a place waits for a batch to be filled, and nobody aside will make room for it.
bool NetworkAdmission::stands_still() const noexcept {
  return taken_ == places_ && !waiting_.empty() && parked_ > 0 && parked_aside_ == aside_;
}

}  // namespace slidestream
