"""Runs the command line in a process that the kernel kills if it opens an Internet socket.

With `--serving` it may open one to be asked, but connect to nothing.

An audit hook of Python would not see what compiled libraries do; a filter of system calls
(seccomp) sees everything, in all threads.
"""

import ctypes
import platform
import struct
import sys

#: Number of the system call `socket`, and how the kernel calls the architecture.
KNOWN = {"x86_64": (41, 0xC000003E), "aarch64": (198, 0xC00000B7)}
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
KILL_PROCESS, ALLOW = 0x80000000, 0x7FFF0000
LOAD, EQUALS, RETURN = 0x20, 0x15, 0x06
INTERNET = (2, 10)  # AF_INET, AF_INET6


#: Number of the system call `connect`.
CONNECT = {"x86_64": 42, "aarch64": 203}


def forbid_internet(*, is_serving: bool = False) -> None:
    """From here on, opening an Internet socket kills the process, or connecting one to anything.

    Raises:
        OSError: the kernel does not know such filters.
    """
    call, architecture = KNOWN[platform.machine()]
    if is_serving:
        call = CONNECT[platform.machine()]
    steps = [
        (LOAD, 0, 0, 4),  # architecture
        (EQUALS, 0, 5, architecture),
        (LOAD, 0, 0, 0),  # number of the system call
        (EQUALS, 0, 3, call),
        (LOAD, 0, 0, 16),  # its first argument
        (EQUALS, 2, 0, INTERNET[0]),
        (EQUALS, 1, 0, INTERNET[1]),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, KILL_PROCESS),
    ]
    if is_serving:  # whatever the arguments, which a filter cannot follow
        steps[3:8] = [(EQUALS, 0, 1, call), (RETURN, 0, 0, KILL_PROCESS), (RETURN, 0, 0, ALLOW)]
        steps[1] = (EQUALS, 0, 3, architecture)
        steps = steps[:6]
    program = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(program)
    header = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(steps), ctypes.addressof(buffer))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    one, zero = ctypes.c_ulong(1), ctypes.c_ulong(0)
    for arguments in (
        (NO_NEW_PRIVILEGES, one, zero, zero, zero),
        (SECCOMP, ctypes.c_ulong(FILTER), ctypes.byref(header), zero, zero),
    ):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "no filter of system calls")


if __name__ == "__main__":
    is_serving = "--serving" in sys.argv
    if is_serving:
        sys.argv.remove("--serving")
    forbid_internet(is_serving=is_serving)
    if sys.argv[1] == "--try":  # shows that the filter works
        import socket

        made = socket.socket(socket.AF_INET)
        made.connect_ex(("127.0.0.1", 1))
        sys.exit(0)
    from inftda.cli.main import main

    main()
