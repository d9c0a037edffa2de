#include "runtime/stage_contract.hpp"

#include <stdexcept>
#include <string>

namespace slidestream::runtime {

void check_chain(std::span<const StageContract* const> stages) {
  for (std::size_t i = 1; i < stages.size(); ++i) {
    const StageContract& from = *stages[i - 1];
    const StageContract& to = *stages[i];
    if (from.gives != to.takes || from.gives_in != to.takes_from) {
      throw std::logic_error("stage '" + std::string(to.name) + "' can't take what stage '" + from.name + "' gives");
    }
  }
}

}  // namespace slidestream::runtime
