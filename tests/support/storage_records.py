"""What faulty_storage writes down with `record`: the changes to storage one by one, and the files after each."""

import os


def records(report):
    """Yields (operation, numbers, bytes)."""
    at = 0
    while at < len(report):
        end = report.index(b"\n", at)
        operation, *numbers = report[at:end].decode().split()
        length = int(numbers.pop())
        yield operation, [int(number) for number in numbers], report[end + 1:end + 1 + length]
        at = end + 1 + length


def states(all_records, synced_only=False):
    """Yields (operation, files by path) after each record. `synced_only`: what wasn't synced since is lost, as far as the
    content goes; names are kept, for file systems keep their order."""
    now, kept, names = {}, {}, {}
    for operation, numbers, data in all_records:
        if operation == "create":
            now[numbers[0]], kept[numbers[0]] = bytearray(), b""
            names[os.fsdecode(data)] = numbers[0]
        elif operation == "write":
            content = now.setdefault(numbers[0], bytearray())
            if len(content) < numbers[1]:
                content.extend(bytes(numbers[1] - len(content)))
            content[numbers[1]:numbers[1] + len(data)] = data
        elif operation == "truncate":
            content = now.setdefault(numbers[0], bytearray())
            del content[numbers[1]:]
            content.extend(bytes(numbers[1] - len(content)))
        elif operation == "sync":
            kept[numbers[0]] = bytes(now.get(numbers[0], b""))
        elif operation == "rename":
            source, target = os.fsdecode(data[:numbers[0]]), os.fsdecode(data[numbers[0]:])
            for name in [name for name in names if name == source or name.startswith(source + "/")]:
                names[target + name[len(source):]] = names.pop(name)
        elif operation == "unlink":
            names.pop(os.fsdecode(data), None)
        contents = kept if synced_only else now
        yield operation, {path: bytes(contents.get(number, b"")) for path, number in names.items()}
