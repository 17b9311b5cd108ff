// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

// Runs the binary as a user does.

extern char** environ;

namespace loipe::test {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A folder of its own, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "loipe-cli-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

/// A run that may still be going on.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{LOIPE_BINARY};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& argument : all) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (folder_ / "out").c_str(), flags, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_ / "err").c_str(), flags, 0600);
    const int error = posix_spawn(&id_, LOIPE_BINARY, &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error("cannot start " LOIPE_BINARY);
  }

  void signal(int number) const { kill(id_, number); }
  std::string err() const { return read_text(folder_ / "err"); }

  Outcome wait() const {
    int status = 0;
    waitpid(id_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_text(folder_ / "out"),
            read_text(folder_ / "err")};
  }

 private:
  TemporaryFolder folder_;
  pid_t id_ = 0;
};

inline Outcome run(const std::vector<std::string>& arguments) { return Process(arguments).wait(); }

/// The run must succeed.
inline Outcome run_ok(const std::vector<std::string>& arguments) {
  Outcome result = run(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result;
}

/// The JSON object of a run that must succeed.
inline Json run_json(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const Outcome result = run_ok(arguments);
  Json json = Json::parse(result.out, nullptr, false);
  EXPECT_TRUE(json.is_object()) << result.out;
  if (json.is_object()) {
    EXPECT_EQ(json["schema"], 1);
  }
  return json;
}

/// A golden file that comes with the tests.
inline std::string golden(const std::string& name) {
  return LOIPE_SOURCE_DIR "/tests/data/cli/" + name + ".safetensors";
}
inline std::string example(const std::string& name) { return LOIPE_SOURCE_DIR "/examples/" + name; }

}  // namespace loipe::test
