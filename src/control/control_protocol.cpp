#include "control/control_protocol.h"

namespace starling::control {

std::string encode_frame(MessageKind kind, std::string_view payload) {
    Writer writer;
    writer.number(kFrameMagic).number(static_cast<uint32_t>(kind)).string(payload);
    return writer.take();
}

void FrameDecoder::feed(std::string_view bytes) {
    if (begin_ > 0) {
        buffer_.erase(0, begin_);
        begin_ = 0;
    }
    buffer_.append(bytes);
}

FrameDecoder::ControlDecodeResult FrameDecoder::next(ControlFrame& out) {
    if (garbage_) return ControlDecodeResult::garbage;
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    if (rest.size() < kFrameHeader) return ControlDecodeResult::need_more;
    Reader reader(rest);
    const auto magic = reader.number<uint32_t>();
    const auto kind = reader.number<uint32_t>();
    const auto length = reader.number<uint32_t>();
    if (magic != kFrameMagic || kind < static_cast<uint32_t>(MessageKind::hello) ||
        kind > static_cast<uint32_t>(MessageKind::last) || length > max_payload_) {
        garbage_ = true;
        buffer_.clear();
        return ControlDecodeResult::garbage;
    }
    if (rest.size() - kFrameHeader < length) return ControlDecodeResult::need_more;
    out.kind = static_cast<MessageKind>(kind);
    out.payload = rest.substr(kFrameHeader, length);
    begin_ += kFrameHeader + length;
    return ControlDecodeResult::frame;
}

void write(Writer& writer, const job::JobAddress& address) {
    writer.number(address.id).number(address.owner_pid).number(address.owner_fd).number(address.host);
}

job::JobAddress read_address(Reader& reader) {
    job::JobAddress address;
    address.id = reader.number<job::JobId>();
    address.owner_pid = reader.number<int32_t>();
    address.owner_fd = reader.number<int32_t>();
    address.host = reader.number<job::HostId>();
    return address;
}

std::string encode(const ControlHello& message) {
    Writer writer;
    writer.number(message.version).number(message.job).number(message.secret[0]).number(message.secret[1]);
    writer.number(message.rank);
    return writer.take();
}

bool decode(std::string_view payload, ControlHello& out) {
    Reader reader(payload);
    out.version = reader.number<uint32_t>();
    out.job = reader.number<job::JobId>();
    out.secret[0] = reader.number<uint64_t>();
    out.secret[1] = reader.number<uint64_t>();
    out.rank = reader.number<uint32_t>();
    return reader.done();
}

std::string encode(const SpawnRequest& message) {
    Writer writer;
    writer.string(message.blob).number(static_cast<uint32_t>(message.commands.size()));
    for (const SpawnCommand& command : message.commands) {
        writer.number(command.maxprocs).number(static_cast<uint32_t>(command.argv.size()));
        for (const std::string& argument : command.argv) writer.string(argument);
        writer.number(static_cast<uint32_t>(command.info.size()));
        for (const auto& [key, value] : command.info) writer.string(key).string(value);
    }
    return writer.take();
}

bool decode(std::string_view payload, SpawnRequest& out) {
    Reader reader(payload);
    out.blob = reader.string();
    out.commands.resize(reader.count(12));
    for (SpawnCommand& command : out.commands) {
        command.maxprocs = reader.number<uint32_t>();
        command.argv.resize(reader.count(4));
        for (std::string& argument : command.argv) argument = reader.string();
        command.info.resize(reader.count(8));
        for (auto& [key, value] : command.info) {
            key = reader.string();
            value = reader.string();
        }
        if (!reader.ok()) return false;
    }
    return reader.done();
}

std::string encode(const SpawnReply& message) {
    Writer writer;
    writer.number(message.error_class).string(message.text);
    write(writer, message.job);
    writer.number(static_cast<uint32_t>(message.codes.size()));
    for (const int32_t code : message.codes) writer.number(code);
    return writer.take();
}

bool decode(std::string_view payload, SpawnReply& out) {
    Reader reader(payload);
    out.error_class = reader.number<int32_t>();
    out.text = reader.string();
    out.job = read_address(reader);
    out.codes.resize(reader.count(4));
    for (int32_t& code : out.codes) code = reader.number<int32_t>();
    return reader.done();
}

std::string encode(const NameRequest& message) {
    Writer writer;
    writer.number(message.job).string(message.service).string(message.port);
    return writer.take();
}

bool decode(std::string_view payload, NameRequest& out) {
    Reader reader(payload);
    out.job = reader.number<job::JobId>();
    out.service = reader.string();
    out.port = reader.string();
    return reader.done();
}

std::string encode(const NameReply& message) {
    Writer writer;
    writer.number(message.error_class).string(message.text).string(message.port);
    return writer.take();
}

bool decode(std::string_view payload, NameReply& out) {
    Reader reader(payload);
    out.error_class = reader.number<int32_t>();
    out.text = reader.string();
    out.port = reader.string();
    return reader.done();
}

std::string encode(const DisconnectNotice& message) {
    Writer writer;
    writer.number(message.child).number(message.parent);
    return writer.take();
}

bool decode(std::string_view payload, DisconnectNotice& out) {
    Reader reader(payload);
    out.child = reader.number<job::JobId>();
    out.parent = reader.number<job::JobId>();
    return reader.done();
}

std::string encode(const JobQuery& message) { return Writer().number(message.job).number(message.rank).take(); }

bool decode(std::string_view payload, JobQuery& out) {
    Reader reader(payload);
    out.job = reader.number<job::JobId>();
    out.rank = reader.number<uint32_t>();
    return reader.done();
}

std::string encode(const JobReply& message) {
    Writer writer;
    writer.number(message.error_class).string(message.text);
    write(writer, message.job);
    return writer.number(message.polls).take();
}

bool decode(std::string_view payload, JobReply& out) {
    Reader reader(payload);
    out.error_class = reader.number<int32_t>();
    out.text = reader.string();
    out.job = read_address(reader);
    out.polls = reader.number<uint32_t>();
    return reader.done();
}

}  // namespace starling::control
