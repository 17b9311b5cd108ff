// SPDX-License-Identifier: Apache-2.0
#include "driver/jacobian_file.h"

#include "base/text.h"
#include "tensor/safetensors.h"

namespace loipe {

namespace {

const std::vector<std::string> kFormatNames{"dense", "coo", "csr", "structured"};

void append_sparse(NamedTensors& tensors, const std::string& name, const SparsePattern& pattern,
                   const Tensor& values, JacobianFormat format) {
  if (format == JacobianFormat::coo) {
    CooIndices indices = coo_indices(pattern);
    tensors.emplace_back(name + ".rows", std::move(indices.rows));
    tensors.emplace_back(name + ".cols", std::move(indices.columns));
    tensors.emplace_back(name + ".values", values);
  } else {
    CsrIndices indices = csr_indices(pattern);
    tensors.emplace_back(name + ".indptr", std::move(indices.indptr));
    tensors.emplace_back(name + ".indices", std::move(indices.indices));
    tensors.emplace_back(name + ".data", values);
  }
}

std::string argument_list(const Program& program, const std::vector<std::size_t>& positions) {
  std::vector<std::string> names;
  for (std::size_t position : positions) names.push_back(program.argument_name(position));
  return join(names, ",");
}

Metadata metadata_of(const TaskJacobian& jacobian, const Subject& subject, JacobianFormat format) {
  std::vector<std::size_t> batched;
  if (jacobian.batch().has_caller_axis())
    for (std::size_t i = 0; i < jacobian.batch().batched.size(); ++i)
      if (jacobian.batch().batched[i]) batched.push_back(i);
  Metadata metadata{{"task", subject.name()},
                    {"order", jacobian.order().name},
                    {"format", to_string(format)},
                    {"wrt", argument_list(jacobian.program(), jacobian.wrt())},
                    {"batched", argument_list(jacobian.program(), batched)}};
  const std::vector<StructuredBlock>& structures = jacobian.structures();
  for (std::size_t block = 0; block < structures.size(); ++block)
    metadata[jacobian.block_name(block)] = to_string(structures[block]);
  for (std::size_t i = 0; i < jacobian.result_types().size(); ++i)
    if (jacobian.has_pattern(i) && format != JacobianFormat::dense)
      metadata[jacobian.result_name(i)] = to_string(jacobian.dense_type(i).shape);
  return metadata;
}

}  // namespace

JacobianFormat parse_jacobian_format(const std::string& text) {
  if (text == "dense") return JacobianFormat::dense;
  if (text == "coo") return JacobianFormat::coo;
  if (text == "csr") return JacobianFormat::csr;
  if (text == "structured") return JacobianFormat::structured;
  throw UserError("unknown format '" + shortened(text) + "'" + did_you_mean(text, kFormatNames) +
                  ": expected " + join(kFormatNames, ", "));
}

std::string to_string(JacobianFormat format) { return kFormatNames[static_cast<std::size_t>(format)]; }

void write_jacobian(const std::filesystem::path& path, const TaskJacobian& jacobian,
                    std::span<const Tensor> results, const Subject& subject, JacobianFormat format) {
  NamedTensors tensors;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string name = jacobian.result_name(i);
    if (!jacobian.has_pattern(i) || format == JacobianFormat::dense) {
      tensors.emplace_back(name, results[i]);
      continue;
    }
    append_sparse(tensors, name, jacobian.pattern(i), results[i], format);
  }
  write_safetensors(path, tensors, metadata_of(jacobian, subject, format));
}

}  // namespace loipe
