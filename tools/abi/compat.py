"""Writes the entry points of a shim: a library that has another MPI's binary interface and calls libmpi_abi.

The conversion of a parameter follows from its C type and name, by the table RULES. src/compat has the conversions that the
generated code calls, with one header per interface. It also has the few functions that need more than one call (BY_HAND). compat.tsv has
the constants of both interfaces: numbers, and for a handle its number, or the object whose address is the handle. >N is the
value that replaces a constant in an interface that lacks it.
"""

import csv
import re

import table

INTERFACES = ("mpich", "openmpi")

HANDLES = tuple(table.NULL_HANDLES)

# Functions of a shim that are written by hand, in src/compat/handwritten.cpp.
BY_HAND = re.compile(
    r"MPI_(Pcontrol|Op_create(_c)?|(Comm|Win|File|Session)_create_errhandler|(Comm|Type|Win)_create_keyval|Keyval_create"
    r"|((Comm|Type|Win)_get_attr|Attr_get)|Grequest_start|Register_datarep(_c)?|Type_get_contents(_c)?"
    r"|Comm_spawn(_multiple)?|Comm_idup(_with_info)?)")
# Functions that exist only in the standard's interface, not in those of the shims.
NOT_THERE = re.compile(r"MPI_(\w+_(toint|fromint)|Abi_\w+)$")

# Parameters that hold the number of elements of an array, in order of preference.
COUNTS = ("incount", "count")

# Conversions of parameters that are not handles. The pattern is matched with the parameter as in the table, without array brackets; the first
# match counts.
RULES = [(re.compile(pattern), conversion) for pattern, conversion in (
    (r"int (dest|source|target_rank|root|rank)$", "rank_in"),
    (r"int (tag|sendtag|recvtag)$", "tag_in"),
    (r"int \*(rank_source|rank_dest|source)$", "ranks_made({}, 1)"),
    (r"int \*tag$", "tag_made"),
    (r"const int ranks1$", "rank_list({}, n)"),
    (r"int ranks2$", "ranks_made({}, n)"),
    (r"int (comm_|type_|win_)?keyval$", "keyval_in"),
    (r"int \*(comm_|type_|win_)?keyval$", "keyval_changed"),
    (r"int (errorcode|errorclass|error)$", "error_in"),
    (r"int \*(errorcode|errorclass|error)$", "errors_made({}, 1)"),
    (r"int required$", "thread_level_in"),
    (r"int \*provided$", "thread_level_made"),
    (r"int assert$", "assertions_in"),
    (r"int lock_type$", "lock_type_in"),
    (r"int split_type$", "split_type_in"),
    (r"int order$", "order_in"),
    (r"const int array_of_distribs$", "distributions({}, ndims)"),
    (r"const int array_of_dargs$", "distribution_arguments({}, ndims)"),
    (r"int typeclass$", "typeclass_in"),
    (r"int \*result$", "comparison_made"),
    (r"int \*status$", "topology_made"),
    (r"int \*combiner$", "combiner_made"),
    (r"int amode$", "file_modes_in"),
    (r"int \*amode$", "file_modes_made"),
    (r"int whence$", "whence_in"),
    (r"MPI_Offset disp$", "displacement_in"),
    (r"int \*(verbosity)$", "verbosity_made"),
    (r"int \*(bind)$", "bind_made"),
    (r"int \*(scope)$", "scope_made"),
    (r"int \*(var_class)$", "pvar_class_made"),
    (r"int var_class$", "pvar_class_in"),
    (r"MPI_T_pvar_handle handle$", "pvar_in"),
    (r"const int (weights|sourceweights|destweights)$", "weights_in"),
    (r"int (sourceweights|destweights)$", "weights_in"),
    (r"(const )?void \*(sendbuf|recvbuf|buf|buffer|origin_addr|inbuf|inoutbuf|outbuf|result_addr|compare_addr)$", "buffer_in"),
    (r"void \*buffer_addr$", "buffer_made"),
    (r"const MPI_Status \*\w+$", "status_in"),
    (r"char \*(port_name)$", "text_made<MPI_MAX_PORT_NAME, abi::kPortName>({}, nullptr)"),
    (r"char \*(comm_name|type_name|win_name)$", "text_made<MPI_MAX_OBJECT_NAME, abi::kObjectName>({}, resultlen)"),
    (r"char \*string$", "text_made<MPI_MAX_ERROR_STRING, abi::kErrorString>({}, resultlen)"),
    (r"char \*version$", "text_made<MPI_MAX_LIBRARY_VERSION_STRING, abi::kLibraryVersion>({}, resultlen)"),
    (r"char \*name$", "text_made<MPI_MAX_PROCESSOR_NAME, abi::kProcessorName>({}, resultlen)"),
    (r"char \*key$", "text_made<MPI_MAX_INFO_KEY, abi::kInfoKey>({}, nullptr)"),
)]
# Parameters to which the rules do not apply although their names match.
EXCEPTIONS = {("MPI_Abort", "errorcode")}
OF_TOOLS = ("name", "desc", "key", "status", "source")  # names with another meaning in the tool interface


def values(interface):
    """Yields (row of constants.tsv, value in the other MPI's interface) for each constant that the interface has."""
    here = {c["name"]: c for c in table.constants() + table.extension_constants()}
    with open(table.HERE / "compat.tsv", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row[interface] != "-":
                yield here[row["name"]], row[interface]


class Parameter:
    def __init__(self, function, text):
        self.text = text.strip()
        self.name = table.parameter_name(self.text)
        brackets = re.search(r"(\s*\[\w*\])+$", self.text)
        self.is_array = brackets is not None
        self.plain = self.text[:brackets.start()] if brackets else self.text  # the form that RULES match
        self.type = re.sub(rf"\b{self.name}$", "", self.plain).strip()
        self.handle = next((h for h in HANDLES if re.fullmatch(rf"(const )?{h}( ?\*)?", self.type)), None)
        self.function = function

    def there(self):
        """Returns the parameter's declaration in a prototype of the other interface."""
        return re.sub(r"\bMPI_(?!Aint|Count|Offset|T_)(\w+)", r"abi::\1", self.text)

    def count(self):
        """Returns an expression for the number of elements of the array."""
        names = self.function.arguments
        if self.name in ("sendtypes", "recvtypes"):
            way = "true" if self.name == "sendtypes" else "false"
            kind = "neighbours" if "eighbor" in self.function.name else "participants"
            return f"{kind}(in<MPI_Comm>(comm), {way})"
        if "num_elements" in names:
            return "num_elements ? *num_elements : 0"
        if self.name == "array_of_statuses" or self.name == "array_of_requests" or self.handle:
            return next(c for c in COUNTS if c in names)
        raise KeyError(self.text)

    def argument(self):
        """Returns the expression that is passed to libmpi_abi for this parameter."""
        name = self.name
        if self.handle:
            if self.is_array:
                if name == "sendtypes":  # ignored if sendbuf is MPI_IN_PLACE
                    return f"list<{self.handle}>(buffer_in(sendbuf) == MPI_IN_PLACE ? nullptr : sendtypes, {self.count()})"
                if self.type.startswith("const"):
                    return f"list<{self.handle}>({name}, {self.count()})"
                return f"changed_list<{self.handle}>({name}, {self.count()})"
            if self.type.endswith("*"):
                made = (name, self.handle) in self.function.makes
                return f"{'made' if made else 'changed'}<{self.handle}>({name})"
            return f"in<{self.handle}>({name})"
        if re.fullmatch(r"MPI_Status ?\*", self.type):
            return f"statuses_made({name}, {self.count()})" if name == "array_of_statuses" else f"statuses_made({name}, 1)"
        if (self.function.name, name) in EXCEPTIONS or (self.function.name.startswith("MPI_T_") and name in OF_TOOLS):
            return name
        for pattern, conversion in RULES:
            if pattern.match(self.plain):
                return conversion.format(name) if "{}" in conversion else f"{conversion}({name})"
        return name


def entry(function):
    parameters = [Parameter(function, p) for p in function.parameters.split(",")] if function.arguments else []
    there = ", ".join(p.there() for p in parameters) or "void"
    call = f"library.{function.prefixed}({', '.join(p.argument() for p in parameters)})"
    if function.returns == "int":
        call = f"error_out({call})"
    name = function.prefixed
    return (f"[[gnu::visibility(\"default\")]] {function.returns} {name}({there}) __asm__(\"P{function.name}\");\n"
            f"{function.returns} {name}({there}) {{\n    return {call};\n}}\n{alias(function.name)}")


def alias(name):
    return f"__asm__(\".weak {name}\\n.set {name}, P{name}\");\n"


def callback_types():
    """Returns declarations of the interface's callback types."""
    out = []
    for t in table.types():
        if t["kind"] == "callback" and not t["name"].startswith("MPI_T_"):
            returns, parameters = t["definition"].split(" ", 1)
            parameters = re.sub(r"\bMPI_(?!Aint|Count|Offset|T_)(\w+)", r"\1", parameters)
            out.append(f"typedef {returns} ({t['name'].removeprefix('MPI_')}){parameters};\n")
        elif t["kind"] == "callback-alias":
            out.append(f"using {t['name'].removeprefix('MPI_')} = {t['definition'].removeprefix('MPI_')};\n")
    return "".join(out)


def cases(interface, chosen):
    """Returns rows (constant, value in the interface, is the first with its Starling value, is the first with the interface's value)."""
    rows, seen_here, seen_there = [], set(), set()
    for constant, there in values(interface):
        if chosen(constant):
            instead, there = there.startswith(">"), there.removeprefix(">")
            rows.append((constant, there, constant["value"] not in seen_here, not instead and there not in seen_there))
            seen_here.add(constant["value"])
            if not instead:
                seen_there.add(there)
    return rows


GROUPS = {  # groups of numeric constants
    "error": lambda c: c["kind"] in ("errclass", "errclass-tool"),
    "rank": lambda c: c["name"] in ("MPI_ANY_SOURCE", "MPI_PROC_NULL", "MPI_ROOT"),
    "tag": lambda c: c["name"] == "MPI_ANY_TAG",
    "thread_level": lambda c: c["kind"] == "thread-level",
    "keyval": lambda c: c["kind"] == "keyval",
    "lock_type": lambda c: c["kind"] == "lock-type",
    "split_type": lambda c: c["kind"] == "split-type",
    "order": lambda c: c["name"].startswith("MPI_ORDER_"),
    "distribution": lambda c: re.match(r"MPI_DISTRIBUTE_(?!DFLT)", c["name"]),
    "distribution_argument": lambda c: c["name"] == "MPI_DISTRIBUTE_DFLT_DARG",
    "combiner": lambda c: c["kind"] == "combiner",
    "typeclass": lambda c: c["kind"] == "typeclass",
    "comparison": lambda c: c["kind"] == "comparison",
    "topology": lambda c: c["kind"] == "topology",
    "window_flavor": lambda c: c["kind"] == "window-flavor",
    "window_model": lambda c: c["kind"] == "window-model",
    "whence": lambda c: c["kind"] == "file-seek",
    "displacement": lambda c: c["name"] == "MPI_DISPLACEMENT_CURRENT",
    "verbosity": lambda c: c["kind"] == "tool-verbosity",
    "bind": lambda c: c["kind"] == "tool-bind",
    "scope": lambda c: c["kind"] == "tool-scope",
    "pvar_class": lambda c: c["kind"] == "tool-pvar-class",
    "assertion": lambda c: re.match(r"MPI_MODE_NO", c["name"]),
    "file_mode": lambda c: c["kind"] == "mode" and not re.match(r"MPI_MODE_NO", c["name"]),
}
LENGTHS = {"PortName": "MPI_MAX_PORT_NAME", "ObjectName": "MPI_MAX_OBJECT_NAME", "ErrorString": "MPI_MAX_ERROR_STRING",
           "LibraryVersion": "MPI_MAX_LIBRARY_VERSION_STRING", "ProcessorName": "MPI_MAX_PROCESSOR_NAME",
           "InfoKey": "MPI_MAX_INFO_KEY"}


def number_functions(interface):
    """Returns the functions X_in and X_out for each group. They return numbers outside the group unchanged."""
    out = []
    for group, chosen in GROUPS.items():
        rows = cases(interface, chosen)
        out.append(f"\nconstexpr int {group}_in(int value) {{\n    switch (value) {{\n")
        out += [f"        case {there}:\n            return {c['name']};\n" for c, there, _, once in rows if once]
        out.append(f"        default:\n            return value;\n    }}\n}}\nconstexpr int {group}_out(int value) {{\n    switch (value) {{\n")
        out += [f"        case {c['name']}:\n            return {there};\n" for c, there, once, _ in rows if once]
        out.append("        default:\n            return value;\n    }\n}\n")
    return "".join(out)


def handle_rows(interface):
    """Returns X-macro rows of the predefined handles of each type that are numbers: all handles in Fortran, and MPICH's in C."""
    out = []
    if interface == "openmpi":
        for handle in HANDLES:
            rows = cases("openmpi_fortran", lambda c: c["kind"] == "handle" and c["type"] == handle)
            out.append(f"#define COMPAT_{handle.upper()}_NUMBERS_IN(X) " +
                       " ".join(f"X({c['name']}, {there})" for c, there, _, once in rows if once) + "\n")
            out.append(f"#define COMPAT_{handle.upper()}_NUMBERS_OUT(X) " +
                       " ".join(f"X({c['value']}, {there})" for c, there, once, _ in rows if once) + "\n")
        return "".join(out)
    for handle in HANDLES:
        rows = cases(interface, lambda c: c["kind"] == "handle" and c["type"] == handle)
        out.append(f"#define COMPAT_{handle.upper()}_IN(X) " +
                   " ".join(f"X({c['name']}, {there})" for c, there, _, once in rows if once) + "\n")
        out.append(f"#define COMPAT_{handle.upper()}_OUT(X) " +
                   " ".join(f"X({c['value']}, {there})" for c, there, once, _ in rows if once) + "\n")
    return "".join(out)


# Bytes of the objects that Open MPI 4 and 5 export, by type: programs reserve space for a copy of that size.
OBJECT_BYTES = {"MPI_Comm": 512, "MPI_Group": 256, "MPI_Datatype": 512, "MPI_Op": 2048, "MPI_Errhandler": 1024, "MPI_Info": 256,
                "MPI_Request": 256, "MPI_Message": 256, "MPI_Session": 512, "MPI_Win": 512, "MPI_File": 1536}
# Further objects that Open MPI exports; the shim translates each to the null handle.
OTHER_OBJECTS = {"MPI_Datatype": ("ompi_mpi_lb", "ompi_mpi_ub", "ompi_mpi_2cplex", "ompi_mpi_2dblcplex", "ompi_mpi_ldblcplex",
                                  "ompi_mpi_c_short_float_complex", "ompi_mpi_cxx_sfltcplex",
                                  "ompi_mpi_unavailable", "ompi_mpi_c_complex")}


def object_rows():
    """Returns X-macro rows (symbol, bytes, our constant), and rows (our value, symbol) for the reverse conversion."""
    there, back, seen = [], [], set()
    for constant, symbol in values("openmpi"):
        if constant["kind"] == "handle":
            if symbol not in seen:
                there.append(f"X({symbol}, {OBJECT_BYTES[constant['type']]}, {constant['name']})")
            if constant["value"] not in seen:
                back.append(f"X({constant['value']}, {symbol})")
            seen |= {symbol, constant["value"]}
    for kind, symbols in OTHER_OBJECTS.items():
        there += [f"X({symbol}, {OBJECT_BYTES[kind]}, {table.NULL_HANDLES[kind]})" for symbol in symbols]
    lines = " \\\n    "
    return (GENERATED + f"#pragma once\n#define COMPAT_OBJECTS(X)" + lines + lines.join(there) +
            "\n#define COMPAT_OBJECTS_BACK(X)" + lines + lines.join(back) + "\n")


def functions():
    return [f for f in table.functions() if not NOT_THERE.match(f.name)] + extensions()


def extensions():
    """Returns the functions for failures, which the other MPIs have under the same names."""
    return [f for f in table.extensions() if f.name.startswith("MPIX_Comm_")]


GENERATED = "// Generated by tools/abi/generate.py from the table of MPI functions and compat.tsv.\n"


def write(interface):
    """Returns a map from file names to their text."""
    standard = functions()
    numbers = GENERATED + "#pragma once\n#include \"mpi-ext.h\"\n\nnamespace starling::compat::abi {\n"
    numbers += number_functions(interface) + "\n" + handle_rows(interface) + "\n"
    for short, name in LENGTHS.items():
        length = next(there for c, there in values(interface) if c["name"] == name)
        numbers += f"inline constexpr int k{short} = {length};\n"
    numbers += "\n}  // namespace starling::compat::abi\n"
    library = GENERATED + "#pragma once\n#include \"mpi-ext.h\"\n\nnamespace starling::compat {\n\nstruct Library {\n"
    library += "".join(f"    decltype(&{f.name}) {f.prefixed};\n" for f in table.functions() + extensions())
    library += "};\nextern Library library;\n\n}  // namespace starling::compat\n#define COMPAT_FUNCTIONS(X) " + " ".join(f"X({f.prefixed})" for f in table.functions()) + "\n"
    library += "#define COMPAT_EXTENSIONS(X) " + " ".join(f"X({f.prefixed})" for f in extensions()) + "\n"
    parts = {}
    for f in standard:
        if BY_HAND.fullmatch(f.name) or f.name == "MPIX_Comm_ishrink":
            continue
        parts.setdefault(f.topic.split(";")[0] if f.topic.startswith(("collective", "p2p", "rma", "io", "tool", "datatype")) else "other", []).append(f)
    files = {"numbers.h": numbers, "callbacks.h": GENERATED + callback_types(), "library.h": library}
    if interface == "openmpi":
        files["objects.h"] = object_rows()
    text = GENERATED + "#include \"compat/convert.h\"\n\nnamespace starling::compat {\n\nextern \"C\" {\n"
    for part in sorted(parts):
        text += f"\n// {part}\n\n" + "\n".join(entry(f) for f in parts[part])
    files["entries.cpp"] = text + "\n}  // extern \"C\"\n\n}  // namespace starling::compat\n"
    return files
