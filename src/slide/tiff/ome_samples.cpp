#include "slide/tiff/ome_samples.hpp"

#include <tiff.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "slide/channels.hpp"
#include "slide/file.hpp"
#include "slide/tiff/grey_planes.hpp"

namespace slidestream {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// "Channel 0", "Channel 1"; "1", "2", "3": one name with numbers that count says nothing of what is seen. Wavelengths
/// don't count.
bool do_count(const std::vector<std::string>& names) {
  std::vector<std::size_t> numbers;
  std::string_view first_word;
  for (const std::string& name : names) {
    const std::size_t word_end = name.find_last_not_of("0123456789") + 1;
    const std::string_view digits = std::string_view(name).substr(word_end);
    if (digits.empty() || digits.size() > 3) return false;
    const std::string_view word = std::string_view(name).substr(0, word_end);
    if (numbers.empty()) first_word = word;
    if (word != first_word) return false;
    numbers.push_back(0);
    for (const char digit : digits) numbers.back() = 10 * numbers.back() + static_cast<std::size_t>(digit - '0');
  }
  std::ranges::sort(numbers);
  const auto count_from = [&](std::size_t next) {
    return std::ranges::all_of(numbers, [&next](std::size_t number) { return number == next++; });
  };
  return count_from(0) || count_from(1);
}

/// Words of a name, of letters and digits.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char each : name) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte >= 0x80 || std::isalnum(byte) != 0) {
      words.back() += each;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

/// Whether names say red, green and blue: as words with something beside them, in some languages, or as letters.
bool are_colours(const std::vector<std::string>& names) {
  struct Colour {
    std::string_view letter;
    std::array<std::string_view, 5> words;
  };
  constexpr std::array<Colour, 3> colours = {{{"r", {"red", "rot", "rouge", "rojo", "rosso"}},
                                              {"g", {"green", "gr\u00fcn", "gruen", "vert", "verde"}},
                                              {"b", {"blue", "blau", "bleu", "azul", "blu"}}}};
  return std::ranges::all_of(colours, [&](const Colour& colour) {
    return std::ranges::any_of(names, [&](const std::string& name) {
      if (name.find(colour.words[0]) != std::string::npos) return true;
      return std::ranges::any_of(words_of(name), [&](const std::string& word) {
        return word == colour.letter || std::ranges::find(colour.words, word) != colour.words.end();
      });
    });
  });
}

/// Whether names are of other things than colours of one picture: none of them lacks, and they don't say red, green and
/// blue in some words. Unless they are dyes, they don't count, or say one thing or alpha, either.
bool are_of_channels(const std::vector<std::string>& names, bool has_fluorescence) {
  if (names.empty()) return false;
  std::vector<std::string> small(names.size());
  std::ranges::transform(names, small.begin(), lower);
  if (are_colours(small)) return false;
  if (has_fluorescence) return true;
  if (do_count(small)) return false;
  if (std::ranges::all_of(small, [&](const std::string& name) { return name == small.front(); })) return false;
  return std::ranges::find(small, "alpha") == small.end();
}

/// "DAPI, CD3 and CD8".
std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += short_name(names[i]);
  }
  return text;
}

/// Whether a sample can be read alone: each has tiles of its own, or the codec gives samples as they are.
bool can_choose(const RawTiff& raw, const RawDirectory& directory) {
  constexpr std::array<std::uint64_t, 4> with_colours = {COMPRESSION_JPEG, 33003, 33005, 34712};
  if (raw.number(directory, TIFFTAG_PLANARCONFIG) == std::uint64_t{PLANARCONFIG_SEPARATE}) return true;
  const std::uint64_t compression = raw.number(directory, TIFFTAG_COMPRESSION).value_or(COMPRESSION_NONE);
  return std::ranges::find(with_colours, compression) == with_colours.end();
}

bool is_in_colour(const RawTiff& raw, const RawDirectory& directory) {
  const std::uint64_t photometric = raw.number(directory, TIFFTAG_PHOTOMETRIC).value_or(PHOTOMETRIC_RGB);
  return photometric == PHOTOMETRIC_RGB || photometric == PHOTOMETRIC_YCBCR;
}

std::string samples_text(std::uint64_t count) { return std::to_string(count) + (count == 1 ? " sample" : " samples"); }

/// How the numbers of samples in OME-XML contradict themselves or the tags, for a line; empty: they don't.
std::string contradiction_in(const OmeImage& image, std::uint64_t samples) {
  const std::vector<std::uint64_t>& said = image.channel_samples;
  if (said.empty()) return {};
  const std::uint64_t sum = std::accumulate(said.begin(), said.end(), std::uint64_t{0});
  if (image.size_c > 0 && sum != image.size_c) {
    return "its OME-XML says that SizeC is " + std::to_string(image.size_c) + ", and its Channels have " +
           samples_text(sum) + (image.size_c_counts ? ": SizeC counts" : ": SizeC doesn't count");
  }
  if (image.channels_are_samples && said.size() == samples) return {};
  const auto fits = [samples](std::uint64_t of_channel) {
    const bool has_alpha = samples == of_channel + 1 && (of_channel == 1 || of_channel == 3);
    return of_channel == samples || has_alpha;
  };
  if (std::ranges::any_of(said, fits)) return {};
  return "its OME-XML says " + samples_text(said.front()) + " a pixel, and the tags " + std::to_string(samples) +
         ": the tags count";
}

}  // namespace

SampleNames read_sample_names(const OmeImage& image, const RawTiff& raw, const RawDirectory& directory,
                              std::vector<std::string>& warnings) {
  const std::uint64_t samples = raw.number(directory, TIFFTAG_SAMPLESPERPIXEL).value_or(1);
  if (std::string line = contradiction_in(image, samples); !line.empty()) {
    warnings.push_back(std::move(line));
    return {};
  }
  SampleNames result;
  if (image.samples.size() != samples) return result;
  for (const std::string& name : image.samples) result.names.push_back(without_control_characters(name));
  const std::string called = "its OME-XML calls the samples of a pixel " + list_of(result.names);
  const std::optional<ColourPlaces> places = places_of_colours(result.names);
  if (places && *places != red_green_blue) warnings.push_back(called + ": they are read as the tags say");
  if (!are_of_channels(result.names, image.has_fluorescence)) return result;
  // Of several planes a plane is chosen, not a sample.
  result.are_channels = image.planes == 1 && can_choose(raw, directory);
  if (!result.are_channels && is_in_colour(raw, directory)) {
    warnings.push_back(called + ": they are read as red, green and blue");
  }
  return result;
}

}  // namespace slidestream
