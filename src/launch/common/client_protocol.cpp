#include "launch/common/client_protocol.h"

#include "control/well_known_socket.h"
#include "launch/common/order.h"
#include "launch/common/plan.h"

namespace starling::launch {

std::string universe_socket_name() { return control::daemon_socket_name() + ".hosts"; }

std::string encode(const Submission& message) {
    Writer writer;
    writer.number(message.version).string(message.release);
    write(writer, message.spec);
    writer.number(message.style.bits() | static_cast<uint32_t>(message.verbose | message.quiet << 1 | message.profile << 2 |
                                                               message.partial << 3 | message.is_debugged << 4)
                                             << JobStyle::kBits);
    writer.number(message.timeout_seconds).string(message.directory);
    write(writer, message.environment);
    writer.number(static_cast<uint8_t>(message.spec.plan != nullptr));
    if (message.spec.plan) write(writer, *message.spec.plan);
    write_unless_default(writer, message.style.output);
    return writer.take();
}

bool decode(std::string_view payload, Submission& out) {
    Reader reader(payload);
    out.version = reader.number<uint32_t>();
    out.release = reader.string();
    if (!understands(out.version)) return false;
    if (!read(reader, out.spec)) return false;
    const auto flags = reader.number<uint32_t>();
    out.style = JobStyle::of_bits(flags);
    out.verbose = (flags >> JobStyle::kBits & 1) != 0;
    out.quiet = (flags >> JobStyle::kBits & 2) != 0;
    out.profile = (flags >> JobStyle::kBits & 4) != 0;
    out.partial = (flags >> JobStyle::kBits & 8) != 0;
    out.is_debugged = (flags >> JobStyle::kBits & 16) != 0;
    out.timeout_seconds = reader.number<uint32_t>();
    out.directory = reader.string();
    read(reader, out.environment);
    const auto plans = reader.number<uint8_t>();
    Plan plan;
    if (plans > 1 || (plans == 1 && !read(reader, plan))) return false;
    if (plans == 1) out.spec.plan = std::make_shared<const Plan>(std::move(plan));
    if (!reader.done()) read_style(reader, out.style.output);
    return reader.done() && out.timeout_seconds < 1u << 30;
}

std::string encode(const SubmissionReply& message) {
    Writer writer;
    writer.number(message.error_class).number(static_cast<uint32_t>(message.unknown_host));
    writer.string(message.text).number(message.hosts);
    if (message.version != 0)
        writer.number(message.version).number(static_cast<uint8_t>(message.cannot_run)).number(message.failed_program);
    return writer.take();
}

bool decode(std::string_view payload, SubmissionReply& out) {
    Reader reader(payload);
    out.error_class = reader.number<int32_t>();
    out.unknown_host = reader.number<uint32_t>() != 0;
    out.text = reader.string();
    out.hosts = reader.number<uint32_t>();
    out.version = 0;
    out.cannot_run = false;
    out.failed_program = 0;
    if (reader.done()) return true;
    out.version = reader.number<uint32_t>();
    const auto flag = reader.number<uint8_t>();
    out.cannot_run = flag == 1;
    out.failed_program = reader.number<uint32_t>();
    return reader.done() && out.version != 0 && flag <= 1;
}

std::string encode(const ClientNotice& message) { return Writer().number(message.number).string(message.bytes).take(); }

bool decode(std::string_view payload, ClientNotice& out) {
    Reader reader(payload);
    out.number = reader.number<uint32_t>();
    out.bytes = reader.string();
    return reader.done();
}

}  // namespace starling::launch
