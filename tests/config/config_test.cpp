#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <string>
#include <utility>
#include <vector>

#include "config/dump_json.hpp"
#include "config/keys.hpp"
#include "config/printable.hpp"
#include "config/suggest.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;

namespace {

/// What parsing says, or "" when it says nothing.
std::string complaint_about(const std::string& toml) {
  try {
    parse_config(toml, "run.toml");
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

std::string complaint_about_setting(const std::string& assignment) {
  try {
    Config config;
    apply_setting(config, assignment);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

/// Some value that the key takes, other than its default more often than not.
ConfigValue some_value(const ConfigKey& key, std::mt19937& random) {
  const auto number = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  switch (key.kind) {
    case KeyKind::flag:
      return random() % 2 == 0;
    case KeyKind::integer:
      return static_cast<std::int64_t>(number(key.low, key.high)) / 2 * 2 + (key.low > 1 ? 2 : 0);
    case KeyKind::real:
      return number(key.low, key.high);
    case KeyKind::choice:
      return key.choices[random() % key.choices.size()];
    case KeyKind::text:
      return std::string("a \"b\"\\\n\t\x01 #=[] \u00e5\u4e2d");
    case KeyKind::texts:
      return std::vector<std::string>{"", "x,y", "'", "C:\\", std::string(random() % 3, 'z')};
    case KeyKind::integers:
      return std::vector<std::int64_t>{3, 0, 1023};
    case KeyKind::reals:
      return std::vector<double>{number(key.low, key.high), number(key.low, key.high), key.low};
    case KeyKind::range: {
      const double low = number(-1e3, 1e3);
      return std::array<double, 2>{low, low + number(1e-3, 1e9)};
    }
  }
  return {};
}

}  // namespace

TEST_CASE("the printed configuration reads back as itself (long)") {
  const std::string defaults = to_toml(Config{});
  CHECK(to_toml(parse_config(defaults, "defaults")) == defaults);

  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Config config;
    for (const ConfigKey& key : config_keys()) {
      const ConfigValue value = some_value(key, random);
      if (complaint(key, value).empty()) key.set(config, value);
    }
    const std::string text = to_toml(config);
    const Config read = parse_config(text, "random");
    CHECK(to_toml(read) == text);
    for (const ConfigKey& key : config_keys()) CHECK_MESSAGE(key.get(read) == key.get(config), key.full_name());
  }
}

TEST_CASE("every key is printed with its comment, and every comment names the default") {
  const std::string text = to_toml(Config{});
  for (const ConfigKey& key : config_keys()) {
    CHECK_MESSAGE(text.find("\n" + std::string(key.name) + " = ") != std::string::npos, key.full_name());
    CHECK_MESSAGE(key.comment.find("Default ") != std::string::npos, key.full_name());
  }
}

TEST_CASE("an empty file is the defaults") { CHECK(to_toml(parse_config("", "empty")) == to_toml(Config{})); }

TEST_CASE("JSON escapes what steers a terminal, and keeps other scripts") {
  const auto text = [](const std::string& name) { return dump_json(nlohmann::json(name), -1); };
  CHECK(text("\x1b\n\"\x7f|") == R"("\u001b\n\"\u007f|")");
  CHECK(text("\u0080\u009b|\u00a0\u00e5\u4e2d\U0001f600") == "\"\\u0080\\u009b|\u00a0\u00e5\u4e2d\U0001f600\"");
  CHECK(text("\u061c\u200e\u2028\u2029\u202a\u202e") == R"("\u061c\u200e\u2028\u2029\u202a\u202e")");
  CHECK(text("\u2066\u2069a") == R"("\u2066\u2069a")");
  CHECK(text("\u2027\u202f\u2010") == "\"\u2027\u202f\u2010\"");
  CHECK(text("a\u200b\ufe0f\U000e0041\U000e0fff\U000e1000") ==
        "\"a\\u200b\\ufe0f\\udb40\\udc41\\udb43\\udfff\U000e1000\"");
  CHECK(text("M\xfcller\x9b") == "\"M\ufffdller\ufffd\"");
  const nlohmann::ordered_json object = {{"b\u202e", {1, "\u2028"}}, {"a", nullptr}};
  CHECK(dump_json(object, -1) == R"({"b\u202e":[1,"\u2028"],"a":null})");
  CHECK(dump_json(object, 1) == "{\n \"b\\u202e\": [\n  1,\n  \"\\u2028\"\n ],\n \"a\": null\n}");
  CHECK(nlohmann::ordered_json::parse(dump_json(object, 2)) == object);
}

TEST_CASE("text that is shown doesn't steer the terminal") {
  CHECK(printable("a\x1b[2J\n\t\x7f|") == "a?[2J???|");
  CHECK(printable("\u0080\u009b|\u00a0\u00e5\u4e2d\U0001f600") == "??|\u00a0\u00e5\u4e2d\U0001f600");
  CHECK(printable("\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069") == "?????????");
  CHECK(printable("\u2010\u2027\u202f\u2070\ufe10\ufffc\U000e1000") ==
        "\u2010\u2027\u202f\u2070\ufe10\ufffc\U000e1000");
  // Broken UTF-8: bytes that are controls in Latin-1 go, others stay.
  CHECK(printable("\x9b"
                  "2J\xc0\x9b\xe2\x80|\xff\xa0") == "?2J\xc0?\xe2?|\xff\xa0");
  CHECK(one_line("a\n\u009b\u202e\x85"
                 "b") == "a    b");
  Config config;
  config.output.dir = "\u009b\u202e\u00e5";
  CHECK(to_toml(config).find("dir = \"\\u009B\\u202E\u00e5\"\n") != std::string::npos);
  CHECK(parse_config(to_toml(config), "own").output.dir == config.output.dir);
}

TEST_CASE("text that is shown hides no characters") {
  // Of no width, joiners, invisible operators, the byte order mark, selectors of variants, tags.
  CHECK(printable("\u00ad\u034f\u180e\u200b\u200c\u200d\u2060\u2064\u206f\u3164\ufeff\ufff9") == "????????????");
  CHECK(printable("\u0600\u0605\u06dd\u070f\u0890\u08e2\u115f\u17b4\u180b\u180f\uffa0") == "???????????");
  CHECK(printable("\ufe00\ufe0f\U000e0001\U000e0020\U000e007f\U000e0100\U000e01ef") == "???????");
  CHECK(printable("\U000110bd\U000110cd\U00013430\U0001bca0\U0001d173\U0001d17a") == "??????");
  CHECK(printable("\u00ac\u00ae\u034e\u0350\u0606\u06de\u180a\u1810\U0001d17b") ==
        "\u00ac\u00ae\u034e\u0350\u0606\u06de\u180a\u1810\U0001d17b");
  CHECK(one_line("slide\u200b.svs") == "slide .svs");
  Config config;
  config.output.dir = "a\u200b\U000e0041\u00e5";
  CHECK(to_toml(config).find("dir = \"a\\u200B\\U000E0041\u00e5\"\n") != std::string::npos);
  CHECK(parse_config(to_toml(config), "own").output.dir == config.output.dir);
}

TEST_CASE("long text is cut in its middle, between characters") {
  const std::string whole(300, 'a');
  CHECK(one_line(whole) == whole);
  CHECK(one_line(whole + "b") == std::string(200, 'a') + "..." + std::string(99, 'a') + "b");
  // The end of the first part, and the beginning of the last, lie in a character.
  CHECK(one_line(std::string(199, 'a') + "\u00e5" + std::string(50, 'x') + "\u00e5" + std::string(99, 'b')) ==
        std::string(199, 'a') + "..." + std::string(99, 'b'));
  const std::string remedy = "' isn't one of these; expected a or b";
  CHECK(one_line("'" + std::string(10'000, '/') + remedy).ends_with(remedy));
}

TEST_CASE("a string that TOML can't hold is refused, not written wrongly") {
  for (const char* bytes : {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80"}) {
    Config config;
    config.output.dir = bytes;
    CHECK_THROWS_AS(to_toml(config), ConfigError);
  }
}

TEST_CASE("a list of one string may be a string, and white is auto or a colour") {
  const Config config = parse_config("[operators]\nrun = \"stain\"\n[stain]\nwhite = [242, 241, 240]", "run.toml");
  CHECK(config.operators.run == std::vector<std::string>{"stain"});
  CHECK(config.stain.white == std::vector<double>{242.0, 241.0, 240.0});
  CHECK(to_toml(config).find("white = [242.0, 241.0, 240.0]") != std::string::npos);
  CHECK(to_toml(Config{}).find("white = \"auto\"") != std::string::npos);
  Config set = config;
  apply_setting(set, "stain.white=auto");
  CHECK(set.stain.white.empty());
  apply_setting(set, "stain.white=[1, 2, 3]");
  CHECK(set.stain.white.size() == 3);
  CHECK(parse_config("[stain]\nwhite = \"auto\"", "run.toml").stain.white.empty());
}

TEST_CASE("what is wrong in a file is said on one line, with line and suggestion") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[analysis]\nwindw = 256", "run.toml:2: unknown key 'windw' in [analysis]; did you mean 'window'?"},
      {"[pipeline]\n\nwindow = 256", "run.toml:3: unknown key 'window' in [pipeline]; did you mean 'analysis.window'?"},
      {"[pipeline]\nwndow = 256", "run.toml:2: unknown key 'wndow' in [pipeline]; did you mean 'analysis.window'?"},
      {"[analyss]\nwindow = 256", "run.toml:1: unknown section 'analyss'; did you mean 'analysis'?"},
      {"# x\nwindow = 256", "run.toml:2: key 'window' stands outside a section; did you mean 'analysis.window'?"},
      {"analysis = 1", "run.toml:1: 'analysis' is a section, [analysis], not a key"},
      {"[analysis]\nwindow = 7", "run.toml:2: analysis.window is 7; expected 8 to 4096"},
      {"[analysis]\nwindow = 4098", "run.toml:2: analysis.window is 4098; expected 8 to 4096"},
      {"[analysis]\nwindow = 9", "run.toml:2: analysis.window must be even"},
      {"[analysis]\nwindow = 'x'", "run.toml:2: analysis.window must be a whole number, not a string"},
      {"[analysis]\nwindow = 1e2", "run.toml:2: analysis.window must be a whole number, not a number with a fraction"},
      {"[analysis]\nwindow = true", "run.toml:2: analysis.window must be a whole number, not true or false"},
      {"[analysis]\nwindow = 9223372036854775807",
       "run.toml:2: analysis.window is 9223372036854775807; expected 8 to 4096"},
      {"[analysis]\nsmoothing_sigma = nan", "run.toml:2: analysis.smoothing_sigma is nan; expected 0.01 to 1000.0"},
      {"[analysis]\nrange = [1, 1]", "run.toml:2: analysis.range is empty: the first number must be below the second"},
      {"[analysis]\nrange = [nan, 1]",
       "run.toml:2: analysis.range is empty: the first number must be below the second"},
      {"[analysis]\nrange = [-inf, inf]", "run.toml:2: analysis.range can't be divided into bins"},
      {"[analysis]\nrange = [1]", "run.toml:2: analysis.range must be two numbers, such as [0.0, 150.0]"},
      {"[decode]\ndevice = 'gpus'",
       "run.toml:2: decode.device is 'gpus'; expected auto, cpu or gpu; did you mean 'gpu'?"},
      {"[input]\nslides = 3", "run.toml:2: input.slides must be a list of strings, not a whole number"},
      {"[input]\nslides = ['a.svs', 1]", "run.toml:2: input.slides must be a list of strings"},
      {"[gpu]\ndevices = [0, 1, 0]", "run.toml:2: gpu.devices names device 0 twice"},
      {"[gpu]\ndevices = [-1]", "run.toml:2: gpu.devices holds -1; expected 0 to 1023"},
      {"[model]\nstd = [0.0, 1.0, 1.0]", "run.toml:2: model.std holds 0.0; expected 1e-06 to 1000000"},
      {"[input]\n\nslides = [\"a\", \"a\\u0000b\"]", "run.toml:3: input.slides contains a NUL"},
      {"[output]\ndir = \"\\u0000\"", "run.toml:2: output.dir contains a NUL"},
      {"[output]\ndir = ''", "run.toml:2: output.dir can't be empty"},
      {"[operators]\nrun = []",
       "run.toml:2: operators.run is empty; expected spectrum, identity, sobel, gaussian, stain, tissue or model"},
      {"[operators]\nrun = ['sobel', 'gausian']",
       "run.toml:2: operators.run names 'gausian'; expected spectrum, identity, sobel, gaussian, stain, tissue or "
       "model; did "
       "you mean 'gaussian'?"},
      {"[operators]\nrun = ['sobel', 'stain', 'sobel']", "run.toml:2: operators.run names 'sobel' twice"},
      {"[operators]\nrun = 'sobels'",
       "run.toml:2: operators.run names 'sobels'; expected spectrum, identity, sobel, gaussian, stain, tissue or "
       "model; "
       "did you mean 'sobel'?"},
      {"[stain]\nwhite = 'bright'", "run.toml:2: stain.white must be \"auto\" or [red, green, blue], not a string"},
      {"[stain]\nwhite = [240, 240]",
       "run.toml:2: stain.white is no colour; expected \"auto\" or three whole numbers, for red, green and blue"},
      {"[stain]\nwhite = [240, 240, 256]", "run.toml:2: stain.white holds 256.0; expected 1 to 255"},
      {"[operators]\nrun = 'sobel,'",
       "run.toml:2: operators.run names ''; expected spectrum, identity, sobel, gaussian, stain, tissue or model"},
      {"[input]\nmpp = -1", "run.toml:2: input.mpp is -1.0; expected 0, or 0.001 to 1000.0"},
      {"[input]\nmpp = 1e-4", "run.toml:2: input.mpp is 1e-04; expected 0, or 0.001 to 1000.0"},
      {"[identity]\ncolour = 'rgba'",
       "run.toml:2: identity.colour is 'rgba'; expected rgb or luminance; did you mean 'rgb'?"},
      {"[sobel]\noutput = 'float'",
       "run.toml:2: sobel.output is 'float'; expected uint8 or float32; did you mean 'float32'?"},
      {"[gaussian]\nradius = 17", "run.toml:2: gaussian.radius is 17; expected 0 to 16"},
      {"[gaussian]\nsigma = 0", "run.toml:2: gaussian.sigma is 0.0; expected 0.01 to 1000.0"},
      {"[stain]\noutput = 'eosine'",
       "run.toml:2: stain.output is 'eosine'; expected normalised, hematoxylin or eosin; did you mean 'eosin'?"},
      {"[tissue]\nshare = 1.5", "run.toml:2: tissue.share is 1.5; expected 0.0 to 1.0"},
      {"[tissue]\nsource = 'json'",
       "run.toml:2: tissue.source is 'json'; expected auto or geojson; did you mean 'geojson'?"},
      {"[pipeline]\nqueue_depth = 0", "run.toml:2: pipeline.queue_depth is 0; expected 1 to 1024"},
  };
  for (const auto& [toml, message] : cases) CHECK(complaint_about(toml) == message);
}

TEST_CASE("keys of earlier versions that decide nothing any more are passed over") {
  CHECK(parse_config("[analysis]\nfftw_wisdom = \"plans\"\nwindow = 64", "run.toml").analysis.window == 64);
  CHECK(complaint_about("[output]\nfftw_wisdom = \"plans\"").find("unknown key") != std::string::npos);
  CHECK(complaint_about_setting("analysis.fftw_wisdom=plans").find("unknown key") != std::string::npos);
}

TEST_CASE("bad syntax is told with its line, on one line") {
  for (const std::string toml : {"[analysis\n", "[analysis]\nwindow = \n", "[analysis]\nwindow = 8\nwindow = 8\n",
                                 "\xff", "x = \"\n\"", "[analysis]\n[analysis]"}) {
    const std::string message = complaint_about(toml);
    CHECK_MESSAGE(message.starts_with("run.toml:"), message);
    CHECK_MESSAGE(message.find('\n') == std::string::npos, message);
  }
}

TEST_CASE("hostile text is refused quickly") {
  std::string dotted = "[analysis]\na";
  for (int i = 0; i < 500000; ++i) dotted += ".a";
  CHECK(complaint_about(dotted + " = 1") == "run.toml: more than 4096 dots in keys");
  std::string quoted = "a";
  for (int i = 0; i < 100000; ++i) quoted += ".\"#\".''";
  CHECK(complaint_about(quoted + " = 1") == "run.toml: more than 4096 dots in keys");
  CHECK(complaint_about("x = " + std::string(100000, '[')).starts_with("run.toml:1: "));
  const std::string long_key(1000000, 'k');
  CHECK(complaint_about("[analysis]\n" + long_key + " = 1").size() < 400);
  // Dots within strings are no keys: thousands of slides are fine.
  std::string slides = "[input]\nslides = [";
  for (int i = 0; i < 10000; ++i) slides += "'a.b.svs', \"\"\"a.svs\"\"\", \"\\\".\",";
  CHECK(complaint_about(slides + "]") == "");
}

TEST_CASE("a setting takes TOML, and bare words where a key takes text") {
  Config config;
  apply_setting(config, "analysis.window=64");
  apply_setting(config, " analysis.range = [0, 1.5]");
  apply_setting(config, "analysis.smoothing_sigma=2");
  apply_setting(config, "output.maps=npy");
  apply_setting(config, "output.dir=/tmp/a b='c'");
  apply_setting(config, "pipeline.backend=\"cpu\"");
  apply_setting(config, "gpu.devices=[0, 2]");
  CHECK(config.analysis.window == 64);
  CHECK(config.analysis.range == std::array<double, 2>{0.0, 1.5});
  CHECK(config.analysis.smoothing_sigma == 2.0);
  CHECK(config.output.maps == MapFormat::npy);
  CHECK(config.output.dir == "/tmp/a b='c'");
  CHECK(config.pipeline.backend == Backend::cpu);
  CHECK(config.gpu.devices == std::vector<int>{0, 2});
  apply_setting(config, "gpu.devices=3");
  CHECK(config.gpu.devices == std::vector<int>{3});
  apply_setting(config, "operators.run=sobel");
  CHECK(config.operators.run == std::vector<std::string>{"sobel"});
  apply_setting(config, "operators.run=['tissue', 'spectrum']");
  CHECK(config.operators.run == std::vector<std::string>{"tissue", "spectrum"});
  apply_setting(config, "input.slides=a.svs");
  CHECK(config.input.slides == std::vector<std::string>{"a.svs"});
  apply_setting(config, "input.slides=['a.svs', \"b.svs\"]");
  CHECK(config.input.slides == std::vector<std::string>{"a.svs", "b.svs"});
}

TEST_CASE("what is wrong in a setting is said on one line, with a suggestion") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"analysis.windw=3", "setting 'analysis.windw=3': unknown key 'analysis.windw'; did you mean 'analysis.window'?"},
      {"window=3", "setting 'window=3': unknown key 'window'; did you mean 'analysis.window'?"},
      {"anlysis.stride=3", "setting 'anlysis.stride=3': unknown key 'anlysis.stride'; did you mean 'analysis.stride'?"},
      {"analysis.window", "setting 'analysis.window': expected section.key=value"},
      {"analysis.window=7", "setting 'analysis.window=7': analysis.window is 7; expected 8 to 4096"},
      {"model.tissue_share=-0.5", "setting 'model.tissue_share=-0.5': model.tissue_share must be -1, or 0 or more"},
      {"model.mpp_tolerance=-0.1", "setting 'model.mpp_tolerance=-0.1': model.mpp_tolerance must be -1, or 0 or more"},
      {"tissue.fill_um2=-0.5", "setting 'tissue.fill_um2=-0.5': tissue.fill_um2 must be -1, or 0 or more"},
      {"output.maps=other", "setting 'output.maps=other': output.maps is 'other'; expected none, npy or tiff"},
      {"pipeline.queue=2",
       "setting 'pipeline.queue=2': unknown key 'pipeline.queue'; did you mean 'pipeline.queue_depth'?"},
      {"gpu.streams=4", "setting 'gpu.streams=4': unknown key 'gpu.streams'"},
      {"gpu.memory_fractoin=1",
       "setting 'gpu.memory_fractoin=1': unknown key 'gpu.memory_fractoin'; did you mean 'gpu.memory_fraction'?"},
      {"stain.white=foo", "setting 'stain.white=foo': stain.white must be \"auto\" or [red, green, blue], not 'foo'"},
      {"pipeline.threads=many", "setting 'pipeline.threads=many': pipeline.threads must be a whole number, not 'many'"},
      {"analysis.window=64\nx=1", "setting 'analysis.window=64 x=1': more than one value"},
  };
  for (const auto& [assignment, message] : cases) CHECK(complaint_about_setting(assignment) == message);
  for (const std::string assignment : {"", "=", ".=", "analysis.window=", "analysis.window=[", "analysis.range=0,1"}) {
    const std::string message = complaint_about_setting(assignment);
    CHECK_MESSAGE(!message.empty(), assignment);
    CHECK_MESSAGE(message.find('\n') == std::string::npos, message);
  }
}

TEST_CASE("validate looks at configurations that no file has been through") {
  Config config;
  CHECK_NOTHROW(validate(config));
  config.analysis.window = 7;
  CHECK_THROWS_WITH_AS(validate(config), "analysis.window is 7; expected 8 to 4096", ConfigError);
  config = {};
  config.output.maps = static_cast<MapFormat>(17);
  CHECK_THROWS_AS(validate(config), ConfigError);
  config = {};
  config.pipeline.backend = Backend::cpu;
  config.decode.device = DecodeDevice::gpu;
  CHECK_THROWS_WITH_AS(validate(config), "decode.device is gpu, but pipeline.backend is cpu", ConfigError);
}

TEST_CASE("a configuration file that can't be read is named with the reason") {
  const test::TemporaryFolder folder;
  const std::string missing = (folder / "missing.toml").string();
  CHECK_THROWS_WITH_AS(load_config(missing), (missing + ": No such file or directory").c_str(), ConfigError);
  CHECK_THROWS_WITH_AS(load_config(folder.path()), (folder.path().string() + ": not a regular file").c_str(),
                       ConfigError);
  std::ofstream(folder / "good.toml") << "[analysis]\nstride = 17\n";
  CHECK(load_config(folder / "good.toml").analysis.stride == 17);
  // Behind a byte order mark, as some editors write it.
  std::ofstream(folder / "marked.toml") << "\xef\xbb\xbf[analysis]\nstride = 17\n";
  CHECK(load_config(folder / "marked.toml").analysis.stride == 17);
}

TEST_CASE("edit distance") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("wnidow", "window") == 1);
  CHECK(edit_distance(std::string(1000, 'a'), std::string(1000, 'b')) == 64);
  CHECK(nearest_name("x", {}).empty());
}

TEST_CASE("names are suggested that are like what was meant, and no others") {
  const std::vector<std::string> names = {"spectrum", "sobel", "stain"};
  CHECK(did_you_mean("spectrm", names) == "; did you mean 'spectrum'?");
  CHECK(did_you_mean("foo", names).empty());
  const std::vector<std::string> options = {"--out", "--quiet"};
  CHECK(did_you_mean("--quite", options) == "; did you mean '--quiet'?");
  CHECK(did_you_mean("--log", options).empty());
  CHECK(did_you_mean("x", {}).empty());
}

TEST_CASE("a string stands for a list of one, and names of operators are cut at commas") {
  using Names = std::vector<std::string>;
  CHECK(parse_config("[operators]\nrun = 'stain'", "x").operators.run == Names{"stain"});
  CHECK(parse_config("[operators]\nrun = 'stain, tissue'", "x").operators.run == Names{"stain", "tissue"});
  CHECK(parse_config("[input]\nslides = 'a,b.svs'", "x").input.slides == Names{"a,b.svs"});
  Config config;
  apply_setting(config, "operators.run=stain,tissue");
  CHECK(config.operators.run == Names{"stain", "tissue"});
  apply_setting(config, "operators.run=[\"sobel\"]");
  CHECK(config.operators.run == Names{"sobel"});
  CHECK_THROWS_AS(apply_setting(config, "operators.run=stain,stain"), ConfigError);
}

TEST_CASE("images are OME-TIFF where an operator makes some and nothing else is said") {
  Config config;
  resolve_image_format(config);
  CHECK(config.image.format == ImageFormat::automatic);
  config.operators.run = {"spectrum", "stain"};
  resolve_image_format(config);
  CHECK(config.image.format == ImageFormat::ome_tiff);
  config.image.format = ImageFormat::none;
  resolve_image_format(config);
  CHECK(config.image.format == ImageFormat::none);
  for (const std::string_view name : operator_names) {
    INFO(name);
    Config one;
    one.operators.run = {std::string(name)};
    resolve_image_format(one);
    CHECK((one.image.format == ImageFormat::ome_tiff) == (name != "spectrum" && name != "tissue"));
  }
}
