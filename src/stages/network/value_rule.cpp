#include "stages/network/value_rule.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>

namespace slidestream {

ValueRule::ValueRule(const Network& network)
    : output_(network.output()),
      is_vector_(output_.kind == NetworkOutput::Kind::vector),
      called_(network.called()),
      range_name_(network.setting_name("range")),
      activation_name_(network.setting_name("activation")),
      ignore_name_(network.setting_name("ignore")) {}

MappedValues ValueRule::look_at(std::span<const float> values) const {
  if (!is_vector_) return look_at_values(values.data(), std::ssize(values) / output_.channels, output_);
  MappedValues seen;
  const auto wrong = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  if (wrong != values.end()) seen.not_finite = wrong - values.begin();
  return seen;
}

std::optional<std::string> ValueRule::complaint(const MappedValues& values) const {
  if (values.not_finite >= 0) return called_ + " gave a value that isn't a finite number";
  if (is_vector_) return std::nullopt;
  if (values.sound(output_)) {
    if (values.ignored == 0) return std::nullopt;
    // A label that means "not computed" can't be one of the network's.
    return called_ + " gave the label " + std::to_string(output_.ignore) + " there, which " + ignore_name_ +
           " reserves for pixels without a computed tile: set " + ignore_name_ + " to a label that it doesn't give";
  }
  std::ostringstream text;
  text << called_ << " gave values from " << values.least << " to " << values.largest << " there";
  if (output_.kind == NetworkOutput::Kind::labels) {
    text << "; labels are whole numbers from 0 to " << output_.high;
    return text.str();
  }
  text << ", and " << range_name_ << " is " << output_.low << " to " << output_.high << ": set " << activation_name_
       << " to \"softmax\", or " << range_name_ << " so that it holds all values";
  return text.str();
}

}  // namespace slidestream
