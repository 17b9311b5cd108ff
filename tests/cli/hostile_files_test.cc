// SPDX-License-Identifier: Apache-2.0
// Hostile files through the binary: it ends with the exit code of a bad file, says why in
// one printable sentence, writes nothing, and takes memory in proportion to the file.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/printable.h"
#include "cli/command_line.h"

namespace loipe::test {
namespace {

using testing::HasSubstr;

std::string header_of(std::uint64_t length, const std::string& header) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header;
}
std::string with_header(const std::string& header, std::size_t data = 0) {
  return header_of(header.size(), header) + std::string(data, '\0');
}
std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

class HostileFiles : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& bytes) {
    write_text(folder_ / name, bytes);
    return folder_ / name;
  }

  /// The exit code is one of these; nothing is written to standard output or to a file.
  void expect_refusal(const std::vector<std::string>& arguments, const std::set<int>& codes,
                      const std::string& message = "") {
    SCOPED_TRACE(testing::PrintToString(arguments));
    const std::size_t files = folder_.file_count();
    const Outcome result = run(arguments);
    EXPECT_THAT(codes, testing::Contains(result.exit_code)) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_LT(result.err.size(), 6000u);
    ASSERT_TRUE(result.err.ends_with('\n')) << result.err;
    const std::string line = result.err.substr(0, result.err.size() - 1);
    EXPECT_EQ(line, printable(line, 6000));
    EXPECT_EQ(folder_.file_count(), files);
  }

  void expect_inputs_refused(const std::string& path, const std::set<int>& codes,
                             const std::string& message = "") {
    expect_refusal({"jacobian", "f", "--inputs", path, "--out", folder_ / "out.safetensors"}, codes, message);
  }
  void expect_program_refused(const std::string& path, const std::set<int>& codes,
                              const std::string& message = "") {
    expect_refusal({"jacobian", path, "--inputs", golden("f"), "--out", folder_ / "out.safetensors"}, codes,
                   message);
  }
  void expect_order_refused(const std::string& path, const std::set<int>& codes,
                            const std::string& message = "") {
    expect_refusal({"count", "f", "--order", path}, codes, message);
  }

  static std::vector<std::string> corpus(const std::string& target) {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(LOIPE_SOURCE_DIR "/tests/fuzz/corpus/" + target))
      paths.push_back(entry.path().string());
    std::ranges::sort(paths);
    return paths;
  }

  TemporaryFolder folder_;
};

/// Valid files of the corpus lack the tensors of `f`, and its programs other arguments.
TEST_F(HostileFiles, TheCorpusOfTheFuzzers) {
  for (const std::string& path : corpus("safetensors")) expect_inputs_refused(path, {2, 5});
  for (const std::string& path : corpus("ir_text"))
    if (!path.ends_with("/empty.loipe")) expect_program_refused(path, {2, 3, 4, 5});
  for (const std::string& path : corpus("order_file")) expect_order_refused(path, {2, 3, 5});
}

TEST_F(HostileFiles, Safetensors) {
  const auto refused = [&](const std::string& bytes, const std::string& message) {
    expect_inputs_refused(file("in.safetensors", bytes), {5}, message);
  };
  refused("", "shorter than 8 bytes");
  refused(header_of(std::uint64_t{1} << 63, "{}"), "does not fit into 10 bytes");
  refused(with_header("{\"x\":" + std::string(100'000, '[')), "nested too deeply");
  refused(with_header(repeated("{\"x\":", 100'000)), "nested too deeply");
  refused(with_header(R"({"x":{"dtype":"F64","shape":[9223372036854775807,2],"data_offsets":[0,8]}})", 8),
          "more elements than can be addressed");
  refused(with_header(R"({"x":{"dtype":"F64","shape":[9223372036854775808],"data_offsets":[0,8]}})", 8),
          "an extent that is not an integer");
  refused(with_header(R"({"x":{"dtype":"F64","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}})"),
          "more elements than can be addressed");
  refused(with_header("{\"\\u0000\\u001b[2J\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,9]}}", 8),
          "lies at bytes 0 to 9 of 8");
  refused(with_header("{\"" + std::string(1'000'000, 'n') + "\":3}"), "is not described by a JSON object");
  refused(with_header("{}", 1), "1 bytes that belong to no tensor");
}

/// Entries of dtypes that are not read are held to the same rules.
TEST_F(HostileFiles, SafetensorsOfUnreadDTypes) {
  for (const char* entry : {R"({"dtype":"BF16","shape":[-1],"data_offsets":[0,8]})",
                            R"({"dtype":"BF16","shape":[3],"data_offsets":[0,8]})",
                            R"({"dtype":"BF16","data_offsets":[0,8]})", R"({"dtype":"BF16","shape":[4]})"})
    expect_inputs_refused(file("in.safetensors", with_header(std::string(R"({"x":)") + entry + "}", 8)), {5});
}

TEST_F(HostileFiles, Programs) {
  const auto refused = [&](const std::string& text, int code, const std::string& message) {
    expect_program_refused(file("p.loipe", text), {code}, message);
  };
  refused("", 5, "line 1, column 1: expected 'program'");
  refused("program p(" + std::string(1'000'000, '('), 5, "expected an argument");
  refused("program p(%x: f64" + std::string(1'000'000, '['), 5, "expected an integer");
  refused("program p() { %1 = sin(%1) return %1 }", 5, "not defined before this use");
  refused("program p(%x: f64[]) { %1 = sin(%2) %2 = sin(%1) return %2 }", 5, "not defined before this use");
  refused("program p(%x: f64[4294967296,4294967296,4294967296]) { return %x }", 4, "can be addressed");
  refused("program p(%x: f64[99999999999999999999]) { return %x }", 5, "does not fit i64");
  refused("program p() { %1 = constant {value=f64[](" + std::string(1'000'000, '9') + ")} return %1 }", 5,
          "does not fit f64");
  refused("program p(%x: f64[]) { %1 = s\xff\xfe(%x) return %1 }", 5, "unexpected character");
  refused(std::string("program p(%x: f64[]) { \0", 24), 5, "unexpected character");
  refused("program " + std::string(1'000'000, 'p') + "() { return }", 5, "needs quotes");
  refused("program p(%\"\x1b[2J\": f64[]) { return %y }", 5, "not defined");
  refused("program p(%x: f64[]) { %1 = sin(%x) {y=" + repeated("{y=", 100'000) + "} return %1 }", 5,
          "expected an attribute value");
}

TEST_F(HostileFiles, Orders) {
  const auto refused = [&](const std::string& text, int code, const std::string& message) {
    expect_order_refused(file("order.json", text), {code}, message);
  };
  std::string million = "[1";
  for (int i = 2; i <= 1'000'000; ++i) million += "," + std::to_string(i);
  refused(million + "]", 2, "unknown:");
  refused("[" + repeated("1,", 1'000'000) + "1]", 2, "repeated: 1");
  refused(std::string(100'000, '['), 5, "nested too deeply");
  refused(repeated("{\"order\":", 100'000), 5, "nested too deeply");
  refused("[1.0]", 5, "entry 1 of the order is not a vertex number");
  refused("[1, \"2\"]", 5, "entry 2 of the order is not a vertex number");
  refused("[1e400]", 5, "out of range");
  refused("[9223372036854775808]", 5, "entry 1");
  refused(R"({"order": [1], "order": [2]})", 5, "repeats the key \"order\"");
  refused("{\"task\": \"\\u001b[2J" + std::string(100'000, 't') + "\", \"order\": [1]}", 2, "is for task");
  refused("[1]\xff", 5, "malformed JSON");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// The largest of all runs above, and of one file of 8 MB that says it needs 2^60 bytes.
TEST_F(HostileFiles, MemoryStaysInProportion) {
  expect_inputs_refused(
      file("in.safetensors",
           with_header(R"({"x":{"dtype":"F64","shape":[1152921504606846975],"data_offsets":[0,8]}})" +
                           std::string(8'000'000, ' '),
                       8)),
      {5});
  expect_program_refused(
      file("p.loipe",
           "program p(%x: f64[8]) { %1 = constant {value=f64[288230376151711743](1.0)} return %1 }"),
      {5}, "wants 288230376151711743 elements");
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  EXPECT_LT(usage.ru_maxrss, 600 * 1024) << "KiB";
}
#endif

}  // namespace
}  // namespace loipe::test
