#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <streambuf>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slidestream {

/// JSON that anybody may have written, on its way to nlohmann's parser. That one holds all bytes since the last text or
/// number began, several times over; here they are bounded before they reach it. It ends at a zero byte, whatever
/// follows; here such a byte is passed on as another that JSON can't have.
class BoundedJson final : public std::streambuf {
 public:
  /// Of a text, a number, or what stands between two of them.
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  /// \param look  called before each block of 64 KiB; what it throws ends the reading. May be empty
  explicit BoundedJson(std::streambuf& source, std::function<void()> look = {})
      : source_(&source), look_(std::move(look)) {}
  explicit BoundedJson(std::string_view text, std::function<void()> look = {}) : text_(text), look_(std::move(look)) {}

 protected:
  /// \throws Error "has a text, a number or a gap of more than 1 MiB at byte N", without the file's name.
  int_type underflow() override;

 private:
  std::size_t read();
  void look_at(std::string_view block);

  static constexpr std::size_t block_bytes = std::size_t{1} << 16;

  std::streambuf* source_ = nullptr;
  std::string_view text_;  ///< what of it isn't read, where there is no source
  std::function<void()> look_;
  std::vector<char> block_ = std::vector<char>(block_bytes);
  std::uint64_t seen_ = 0;   ///< bytes before the block
  std::uint64_t began_ = 0;  ///< where the last text or number did
  bool is_in_text_ = false;
  bool is_escaped_ = false;
};

/// Takes the events of nlohmann's parser, without a document in memory. Broken JSON ends it: `sax_parse` is false.
class JsonWalker : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return value({}); }
  bool boolean(bool given) override { return value(given); }
  bool number_integer(number_integer_t given) override { return value(given); }
  bool number_unsigned(number_unsigned_t given) override { return value(given); }
  bool number_float(number_float_t given, const string_t& /*text*/) override { return value(given); }
  bool string(string_t& given) override { return value(std::move(given)); }
  bool binary(binary_t& /*given*/) override { return false; }
  bool key(string_t& name) override;
  bool start_object(std::size_t /*size*/) override { return start(true); }
  bool end_object() override { return end(); }
  bool start_array(std::size_t /*size*/) override { return start(false); }
  bool end_array() override { return end(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 protected:
  /// Objects and arrays around what is told; 1 for members of the outermost.
  std::size_t depth() const { return depth_; }
  virtual void on_key(const std::string& name) = 0;
  /// Of anything but objects and arrays.
  virtual void on_value(const nlohmann::json& value) = 0;
  /// Before it is entered.
  virtual void on_start(bool is_object) = 0;
  /// After it is left.
  virtual void on_end() = 0;

 private:
  bool value(const nlohmann::json& given);
  bool start(bool is_object);
  bool end();

  std::size_t depth_ = 0;
};

/// The members of an object with these names; of a name that stands twice, the last one. Empty if the text isn't JSON,
/// isn't an object, or has more in these members than a run writes: 2^13 names and values, 64 deep, 1 MiB of text.
nlohmann::ordered_json members_of(std::string_view text, std::initializer_list<std::string_view> names);

}  // namespace slidestream
