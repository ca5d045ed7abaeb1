# guest-tasks.py - for gdb, at a guest that stands: every task with what it waits for
# (scripts/guest-tasks).
import gdb

STATES = ((0x1, "sleeping"), (0x2, "waiting"), (0x4, "stopped"), (0x8, "traced"), (0x10, "dead"),
          (0x20, "zombie"), (0x80, "gone"))
STACK = 8192
FRAMES = 12

char_pointer = gdb.lookup_type("char").pointer()
word_pointer = gdb.lookup_type("unsigned int").pointer()
task_type = gdb.lookup_type("struct task_struct")


def listed(head, member):
    """The tasks of a list, whose entries are their `member`."""
    offset = next(f.bitpos // 8 for f in task_type.fields() if f.name == member)
    entry = head["next"]
    while entry != head.address:
        yield (entry.cast(char_pointer) - offset).cast(task_type.pointer()).dereference()
        entry = entry["next"]


def stack(task):
    """Names of the functions to which words on a sleeping task's stack return."""
    start = gdb.parse_and_eval("(unsigned long)_stext")
    stop = gdb.parse_and_eval("(unsigned long)_etext")
    sp, names = int(task["thread"]["sp"]), []
    end = int(task["stack"]) + STACK
    if not end - STACK <= sp < end:
        return names
    for address in range(sp, end, 4):
        word = gdb.Value(address).cast(word_pointer).dereference()
        if start <= word < stop:
            symbol = gdb.execute("info symbol %#x" % int(word), to_string=True).split()
            if len(symbol) > 2 and symbol[1] == "+":
                names.append(symbol[0])
        if len(names) == FRAMES:
            break
    return names


def signals(value):
    return int(value["sig"][0]) | int(value["sig"][1]) << 32


print("TASKS")
for leader in listed(gdb.parse_and_eval("init_task.tasks"), "tasks"):
    for task in listed(leader["signal"]["thread_head"], "thread_node"):
        state = int(task["__state"])
        said = next((text for bit, text in STATES if state & bit), hex(state))
        if not state & 0xff:
            said = "running"
        print("%5d %5d %-16s CPU %d %s%s" % (leader["pid"], task["pid"], task["comm"].string(),
                                            task["thread_info"]["cpu"], said,
                                            ", on a queue" if int(task["on_rq"]) else ""), end="")
        for name, value in (("pending", signals(task["pending"]["signal"])),
                            ("pending for all",
                             signals(task["signal"]["shared_pending"]["signal"])),
                            ("blocked", signals(task["blocked"]))):
            if value:
                print(", %s %#x" % (name, value), end="")
        print("\n      " + " ".join(stack(task)))
