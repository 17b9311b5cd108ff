// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace loipe {

/// Whose fault an error is, and the exit code that the command line gives it.
enum class ErrorCode {
  check_failed = 1,      ///< a requested check did not hold
  invalid_argument = 2,  ///< a mistake in the call: name, shape, dtype, order, option
  unsupported = 3,       ///< a legal request that no part of Loipe can serve yet
  resource_limit = 4,    ///< a limit given by the caller would be exceeded
  file = 5,              ///< a file is unreadable, malformed or cannot be written
  internal = 70,         ///< a broken invariant of Loipe itself: please report it
};

/// Base of everything that Loipe throws. The message is one sentence that names
/// what was wrong and where, says what was expected, and suggests what to try.
/// The library never prints, aborts or exits.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// The caller's mistake.
class UserError : public Error {
 public:
  explicit UserError(const std::string& message) : Error(ErrorCode::invalid_argument, message) {}

 protected:
  UserError(ErrorCode code, const std::string& message) : Error(code, message) {}
};

/// A file that cannot be read, is malformed, or cannot be written.
class FileError : public UserError {
 public:
  explicit FileError(const std::string& message) : UserError(ErrorCode::file, message) {}
};

/// A limit set by the caller (memory, size) that the request does not fit into.
class ResourceError : public UserError {
 public:
  explicit ResourceError(const std::string& message) : UserError(ErrorCode::resource_limit, message) {}
};

/// A legal request that is not supported, with the reason.
class Unsupported : public Error {
 public:
  explicit Unsupported(const std::string& message) : Error(ErrorCode::unsupported, message) {}
};

/// A broken invariant inside Loipe.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message)
      : Error(ErrorCode::internal, "internal error: " + message + " (please report this)") {}
};

}  // namespace loipe
