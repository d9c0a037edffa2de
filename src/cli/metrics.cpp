#include "cli/metrics.hpp"

#include <string_view>

#include "config/printable.hpp"
#include "output/text.hpp"

namespace slidestream::cli {

namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"') result += '\\';
    result += c;
  }
  return result;
}

class Writer {
 public:
  explicit Writer(const std::string& out) : label_("out=\"" + escaped(out) + "\"") {}

  void describe(const char* name, const char* type, const char* help) {
    text_ += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  void add(const char* name, const std::string& value, const std::string& more = "") {
    text_ += std::string(name) + "{" + label_ + (more.empty() ? "" : "," + more) + "} " + value + "\n";
  }
  void single(const char* name, const char* type, const char* help, const std::string& value) {
    describe(name, type, help);
    add(name, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string label_;
  std::string text_;
};

}  // namespace

std::string metrics_text(const Metrics& metrics) {
  Writer writer(metrics.out);
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  writer.describe("slidestream_slides", "gauge", "Slides of the run by state.");
  writer.add("slidestream_slides", number(metrics.done), "state=\"done\"");
  writer.add("slidestream_slides", number(metrics.failed), "state=\"failed\"");
  const std::uint64_t ended = metrics.done + metrics.failed;
  writer.add("slidestream_slides", number(metrics.slides > ended ? metrics.slides - ended : 0), "state=\"left\"");
  writer.single("slidestream_slides_skipped", "gauge", "Slides that an earlier process had done.",
                number(metrics.skipped));
  writer.single("slidestream_file_bytes", "gauge", "Bytes of the files of all slides.", number(metrics.bytes));
  writer.single("slidestream_file_bytes_left", "gauge", "Bytes of the files of slides that are to be done.",
                number(metrics.bytes_left));
  writer.single("slidestream_pixels_total", "counter", "Pixels transformed by this process.", number(metrics.pixels));
  writer.single("slidestream_read_bytes_total", "counter", "Bytes read by this process.", number(metrics.bytes_read));
  writer.single("slidestream_run_seconds", "gauge", "Time since this process began.", to_decimal(metrics.seconds));
  if (metrics.seconds_left >= 0) {
    writer.single("slidestream_left_seconds", "gauge", "Estimate of the time to the end.",
                  to_decimal(metrics.seconds_left));
  }
  writer.single("slidestream_running", "gauge", "1 while the process works.", metrics.running ? "1" : "0");
  writer.single("slidestream_updated_seconds", "gauge", "When this was written, since 1970.",
                std::to_string(metrics.time));
  return writer.take();
}

}  // namespace slidestream::cli
