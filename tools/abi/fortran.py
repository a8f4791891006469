"""Writes the Fortran interfaces (MPI 5.0 chapter 19): entry points by reference, mpif.h, and the modules mpi and mpi_f08; and those of
Starling's extensions, mpif-ext.h, mpi_ext and mpi_f08_ext.

The entry points follow the conventions that compilers on Linux share: lower-case names with one underscore, arguments by
reference, lengths of texts after all other arguments, null for an absent optional argument. So mpi_f08 and mpif.h use the same
procedures (handles are structures of one integer), and the modules consist of declarations only. Each compiler compiles them for
itself, so no module file of another compiler is used. src/fortran has the functions that the entry points call, and the entry
points that need more than one call. Procedures of mpi_f08 with buffers exist in two forms; sections.py writes those for descriptors.
"""

import re

import compat
import table

# Functions whose entry points are written by hand in src/fortran.
BY_HAND = re.compile(
    r"MPI_(Init|Init_thread|Pcontrol|Op_create(_c)?|\w+_create_errhandler|((Comm|Type|Win)_create_keyval|Keyval_create)"
    r"|((Comm|Type|Win)_[gs]et_attr|Attr_(get|put))|Grequest_start|Register_datarep(_c)?|Comm_spawn(_multiple)?"
    r"|Info_get|Info_get_string|Info_create_env|Session_get_nth_pset|(Buffer_detach|(Comm|Session)_detach_buffer)(_c)?"
    r"|Comm_idup(_with_info)?|Type_get_contents(_c)?)|MPIX_Comm_(ishrink|replace)")
NOT_THERE = re.compile(r"MPI_(T_\w+|\w+_(toint|fromint)|Abi_\w+fortran\w+|\w+_[cf]2[cf]|\w+_f2c)$")
FUNCTIONS = {"MPI_Wtime": "double precision", "MPI_Wtick": "double precision",
             "MPI_Aint_add": "integer(kind=MPI_ADDRESS_KIND)", "MPI_Aint_diff": "integer(kind=MPI_ADDRESS_KIND)"}
# Functions of the old interface only, which mpi_f08 lacks.
OLD = re.compile(r"MPI_(Attr_\w+|Keyval_\w+)$")

# The forms of modules: mpi, mpi_f08 for compilers that pass arrays by reference (MPI 5.0 section 19.1.5, 1A), and mpi_f08 for those that
# pass descriptors (1B).
OLD_FORM, BY_REFERENCE, BY_DESCRIPTOR = False, "_f08", "_f08ts"

KINDS = {"MPI_Aint": "MPI_ADDRESS_KIND", "MPI_Count": "MPI_COUNT_KIND", "MPI_Offset": "MPI_OFFSET_KIND"}
LOGICAL = re.compile(r"(flag|commute|reorder|periods|remain_dims|high|weighted|atomic|complete)$")
# Functions whose flag is an integer of 32 bits, which the call reads and writes.
AGREEMENT = re.compile(r"MPIX_Comm_i?agree$")
# Indices, which start at 1 in Fortran (MPI 5.0 section 3.7.5).
INDEX = re.compile(r"int \*indx$")
INDICES = re.compile(r"int array_of_indices$")
# Parameters in which the call returns an address.
ADDRESS_OUT = ("baseptr", "buffer_addr")


class Parameter(compat.Parameter):
    """A parameter of the C interface in its Fortran form."""

    @property
    def is_text(self):
        return self.type in ("char *", "const char *", "char", "const char") and not self.name.startswith("argv")

    @property
    def is_buffer(self):
        return self.type in ("void *", "const void *") and self.name not in ADDRESS_OUT + ("attribute_val", "extra_state")

    @property
    def is_callback(self):
        return self.base.endswith("_function") or self.base.endswith("_function_c")

    @property
    def kind(self):
        """Returns the kind of integer for the declaration, or None."""
        if self.name in ("attribute_val", "extra_state") or self.name == "baseptr":
            return None if OLD.match(self.function.name) else "MPI_ADDRESS_KIND"
        return KINDS.get(self.base)

    @property
    def by_value(self):
        return not self.is_array and "*" not in self.type

    @property
    def base(self):
        return self.type.replace("const", "").replace("*", "").strip()

    @property
    def logical(self):
        return self.base == "int" and LOGICAL.match(self.name) and not AGREEMENT.match(self.function.name)

    @property
    def written(self):
        return not self.type.startswith("const") and not self.by_value

    def there(self):
        if self.is_text:
            return f"{'const ' if self.type.startswith('const') else ''}char* {self.name}"
        if self.base == "MPI_Status":
            return f"{'const ' if self.type.startswith('const') else ''}int* {self.name}"
        kind = "int" if self.handle else "void" if self.base == "void" else self.base
        return f"{'const ' if self.by_value or self.type.startswith('const') else ''}{kind}* {self.name}"

    def argument(self):
        name = self.name
        if self.is_text:
            if self.type.startswith("const"):
                of_info = self.function.name.startswith("MPI_Info_")
                return f"{'word' if of_info else 'text'}_in({name}, {name}_length)"
            return f"text_out<{self.most()}>({name}, {name}_length)"
        if self.base == "MPI_Status":
            if self.type.startswith("const"):
                return f"status_read({name})"
            return f"statuses_place({name}, {self.count() if name == 'array_of_statuses' else '1'})"
        if self.is_buffer:
            return f"place({name})"
        if self.logical and self.by_value:
            return f"*{name} != 0"
        if re.search(r"weights$", name):
            return f"weights_place({name})"
        if INDEX.match(self.plain):
            return f"index_made({name})"
        if INDICES.match(self.plain):
            return f"indices_made({name}, outcount, *incount)"
        if self.handle:
            self.name = f"*{name}" if self.by_value else name
            value = super().argument()
            self.name = name
            return value.replace("buffer_in(", "place(")
        if self.plain == "int ranges":
            return f"reinterpret_cast<int(*)[3]>({name})"
        return self.number(f"*{name}" if self.by_value else name)

    def number(self, name):
        """Returns the conversion of a number that RULES names for this parameter; `name` itself if none applies."""
        if (self.function.name, self.name) in compat.EXCEPTIONS:
            return name
        for pattern, conversion in compat.RULES:
            if pattern.match(self.plain) and "buffer" not in conversion and "text" not in conversion:
                return re.sub(r", (n|ndims)\)", r", *\1)", conversion.format(name)) if "{}" in conversion else f"{conversion}({name})"
        return name

    def count(self):
        """Returns an expression for the number of elements of the array, which is passed by reference."""
        count = super().count()
        count = re.sub(r"\bcomm\b", "*comm", count)
        return f"*{count}" if count in self.function.arguments else count

    def most(self):
        """Returns the name of the C constant for the maximum length of a text."""
        return next((most for names, most in (
            (("port_name",), "MPI_MAX_PORT_NAME"), (("comm_name", "type_name", "win_name"), "MPI_MAX_OBJECT_NAME"),
            (("string",), "MPI_MAX_ERROR_STRING"), (("version",), "MPI_MAX_LIBRARY_VERSION_STRING"),
            (("name",), "MPI_MAX_PROCESSOR_NAME"), (("key",), "MPI_MAX_INFO_KEY"), (("datarep",), "MPI_MAX_DATAREP_STRING"))
            if self.name in names))

    # --- declarations in mpif.h and the modules ---

    def shape(self):
        if self.plain == "int ranges":
            return "(3,*)"
        return "(*)" if self.is_array else ""

    def declared(self, form):
        """Returns the declaration of the parameter in a module."""
        modern = form != OLD_FORM
        name, shape = self.name, self.shape()
        if self.is_callback:
            return f"procedure({self.base}) :: {name}" if modern else f"external :: {name}"
        if name in ("attribute_val", "extra_state"):
            return "integer :: " + name if OLD.match(self.function.name) else f"integer(kind=MPI_ADDRESS_KIND){self.direction(modern)} :: {name}"
        if name == "buffer_addr" and not modern:
            return buffer_lines(name)
        if name in ("argv", "array_of_commands", "array_of_argv"):
            return f"character(len=*), intent(in) :: {name}({'count,*' if name == 'array_of_argv' else '*'})"
        intent = self.direction(modern)
        if self.base == "MPI_Status":
            many = name == "array_of_statuses"
            if modern:
                return f"type(MPI_Status) :: {name}{'(*)' if many else ''}"
            return f"integer :: {name}(MPI_STATUS_SIZE{',*' if many else ''})"
        lasting = ", asynchronous" if form == BY_DESCRIPTOR and goes_on(self.function) else ""
        if self.is_buffer:
            return f"type(*), dimension(..){intent}{lasting} :: {name}" if form == BY_DESCRIPTOR else buffer_lines(name)
        if self.is_array and self.type.startswith("const"):
            intent += lasting
        if name in ADDRESS_OUT:
            return f"type(c_ptr), intent(out) :: {name}" if modern else f"integer(kind=MPI_ADDRESS_KIND) :: {name}"
        if self.is_text:
            return f"character(len=*), intent({'in' if self.type.startswith('const') else 'out'}) :: {name}"
        if self.handle:
            return f"{f'type({self.handle})' if modern else 'integer'}{intent} :: {name}{shape}"
        kind = "logical" if self.logical else f"integer(kind={KINDS[self.base]})" if self.base in KINDS else "integer"
        return f"{kind}{intent} :: {name}{shape}"

    def direction(self, modern):
        """Returns the intent attribute; none for parameters that accept a constant at a special address, such as MPI_STATUS_IGNORE."""
        function = self.function.name.removesuffix("_c")
        if not self.written or modern and (self.name == "ranges" or self.name == "attribute_val" and function.endswith("_set_attr")
                                           or self.name == "extra_state" and function != "MPI_Grequest_start"):
            return ", intent(in)"
        if self.handle:
            return ", intent(out)" if (self.name, self.handle) in self.function.makes else ", intent(inout)" if modern else ""
        if not modern or self.base == "MPI_Status" or self.is_buffer or self.name in (
                "array_of_errcodes", "extra_state", "sourceweights", "destweights"):
            return ""
        if self.name == "flag" and AGREEMENT.match(function):
            return ", intent(inout)" + (", asynchronous" if "request" in self.function.arguments else "")
        both = self.name in ("position", "buflen", "pset_len") or function.endswith("_free_keyval") or function == "MPI_Dims_create"
        return ", intent(inout)" if both else ", intent(out)"


def buffer_lines(name):
    """Declares a buffer of any type and rank, passed by reference. Each compiler understands one of the directives."""
    return "\n".join([f"type(*), dimension(*) :: {name}"] + [f"!{word} :: {name}" for word in (
        "GCC$ attributes no_arg_check", "DEC$ attributes no_arg_check")] + [f"!{word} {name}" for word in (
            "$PRAGMA ignore_tkr", "DIR$ ignore_tkr", "IBM* ignore_tkr")])


def has_buffers(function):
    return any(p.is_buffer for p in parameters_of(function))


def takes_descriptors(function):
    """Returns whether bind(C) passes the buffers as descriptors. Functions with texts are excluded: compilers before Fortran 2018 do not
    accept texts there. Such functions are few, and do not use their buffers after returning."""
    return has_buffers(function) and not any(p.is_text for p in parameters_of(function))


def goes_on(function):
    """Returns whether the library still uses the buffers, or their addresses, after the function has returned."""
    return "request" in function.arguments or bool(re.match(
        r"MPI_(Accumulate|Get_accumulate|Put|Get|Fetch_and_op|Compare_and_swap|Win_create|Win_attach|Win_detach|Free_mem|Get_address"
        r"|\w+_attach(_buffer)?|File_\w+_(begin|end))(_c)?$", function.name))


def parameters_of(function):
    if not function.arguments:
        return []
    found = [Parameter(function, p) for p in function.parameters.split(",") if p.strip() != "..."]
    if function.name in ("MPI_Init", "MPI_Init_thread", "MPI_Info_create_env"):
        found = [p for p in found if p.name not in ("argc", "argv")]
    return found


def functions():
    return [f for f in table.functions() if not NOT_THERE.match(f.name)]


def extensions():
    """Returns the functions of modules mpi_ext and mpi_f08_ext."""
    return [f for f in table.extensions() if f.name.startswith("MPIX_")]


def entry(function):
    parameters = parameters_of(function)
    arguments = ", ".join(p.argument() for p in parameters)
    lengths = [f"size_t {p.name}_length" for p in parameters if p.is_text]
    low = function.prefixed.lower()
    call = f"library.{function.prefixed}({arguments})"
    if function.name in FUNCTIONS:
        there = ", ".join(p.there() for p in parameters)
        return f"FORTRAN_FUNCTION({function.returns}, {low}, ({there})) {{ return {call}; }}\n"
    there = ", ".join([p.there() for p in parameters] + ["int* ierror"] + lengths)
    pointer = f"FORTRAN_C_POINTER({low})\n" if any(p.name == "baseptr" for p in parameters) else ""
    if low.endswith("_c"):
        pointer += f"FORTRAN_LARGE({low.removesuffix('_c')})\n"
    word = "EXTENSION" if function.doc else "ENTRY"
    return f"FORTRAN_{word}({low}, ({there})) {{ give(ierror, {call}); }}\n{pointer}"


GENERATED = "// Generated by tools/abi/generate.py from the table of MPI functions.\n"


def entries(added):
    """Returns the source text of the entry points. `added`: the extensions that the interface has."""
    parts = {}
    for f in functions() + added:
        if not BY_HAND.fullmatch(f.name):
            parts.setdefault(f.topic.split(";")[0], []).append(f)
    text = GENERATED + "#include \"fortran/arguments.h\"\n#include \"fortran/entry.h\"\n\nnamespace starling::compat {\n\nextern \"C\" {\n"
    for part in sorted(parts):
        text += f"\n// {part}\n\n" + "".join(entry(f) for f in parts[part])
    return text + "\n}  // extern \"C\"\n\n}  // namespace starling::compat\n"


def library():
    """Returns the header with struct Library, through which the entry points call the PMPI_ functions."""
    return (GENERATED + "#pragma once\n#include \"mpi-ext.h\"\n\nnamespace starling::compat {\n\nstruct Library {\n" +
            "".join(f"    static constexpr decltype(&P{f.name}) {f.prefixed} = P{f.name};\n" for f in table.functions() + extensions()) +
            "};\ninline constexpr Library library;\n\n}  // namespace starling::compat\n")


def numbers():
    """Returns the header of number conversions, which change nothing: Fortran uses the library's own numbers."""
    text = GENERATED + "#pragma once\n#include \"mpi-ext.h\"\n\nnamespace starling::compat::abi {\n\n"
    for group in compat.GROUPS:
        text += f"constexpr int {group}_in(int value) {{ return value; }}\nconstexpr int {group}_out(int value) {{ return value; }}\n"
    text += "\n".join(f"inline constexpr int k{short} = {name};" for short, name in compat.LENGTHS.items())
    return text + "\n\n}  // namespace starling::compat::abi\n"


# --- constants and interfaces of mpif.h and the modules ---

SKIPPED_KINDS = re.compile(r"tool-.*|errclass-tool|function-pointer.*|kind|pointer|handle|offset|string-length|fortran-status-index")

CALLBACK_CONSTANTS = [f"MPI_{kind}_{which}" for kind in ("COMM", "TYPE", "WIN")
                      for which in ("NULL_COPY_FN", "DUP_FN", "NULL_DELETE_FN")] + ["MPI_CONVERSION_FN_NULL"]
OLD_CALLBACK_CONSTANTS = ["MPI_NULL_COPY_FN", "MPI_DUP_FN", "MPI_NULL_DELETE_FN"]


def value_of(constant):
    return int(constant["value"], 0)


def number_constants():
    """Returns (name, value, kind) of the integer constants."""
    found = [("MPI_STATUS_SIZE", 8, ""), ("MPI_SOURCE", 1, ""), ("MPI_TAG", 2, ""), ("MPI_ERROR", 3, ""),
             ("MPI_ADDRESS_KIND", 8, ""), ("MPI_COUNT_KIND", 8, ""), ("MPI_OFFSET_KIND", 8, ""), ("MPI_INTEGER_KIND", 4, "")]
    for c in table.constants():
        if c["kind"] == "string-length":
            found.append((c["name"], value_of(c) - 1, ""))  # Fortran texts have no null at the end
        elif c["kind"] == "offset":
            found.append((c["name"], value_of(c), "MPI_OFFSET_KIND"))
        elif not SKIPPED_KINDS.fullmatch(c["kind"]):
            found.append((c["name"], value_of(c), ""))
    return found


def handle_constants():
    return [(c["name"], c["type"], value_of(c)) for c in table.constants() if c["kind"] == "handle"]


# Constants in one common block. The library recognizes each by its address in the block (src/fortran/sentinels.h has the same order).
SENTINELS = [("MPI_BOTTOM", ""), ("MPI_IN_PLACE", ""), ("MPI_BUFFER_AUTOMATIC", ""), ("MPI_UNWEIGHTED", "(1)"), ("MPI_WEIGHTS_EMPTY", "(1)"),
             ("MPI_ERRCODES_IGNORE", "(1)"), ("MPI_STATUS_IGNORE", "(8)"), ("MPI_STATUSES_IGNORE", "(8,1)")]


def old_constants():
    """Returns the constants for mpif.h and module mpi, as lines for fixed and free form: at most 66 characters, to fit columns 7 to 72."""
    lines = []
    for name, value, kind in number_constants() + [(n, v, "") for n, _, v in handle_constants()]:
        lines.append(f"integer(kind={kind}) {name}" if kind else f"integer {name}")
        lines.append(f"parameter ({name}={value})")
    for name in ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"):
        lines += [f"logical {name}", f"parameter ({name}=.false.)"]
    for name, shape in SENTINELS:
        lines += [f"integer {name}{shape}", f"common /mpi_abi_places/ {name}"]
    for name, shape in (("MPI_ARGV_NULL", "(1)"), ("MPI_ARGVS_NULL", "(1,1)")):
        lines += [f"character*1 {name}{shape}", f"common /mpi_abi_texts/ {name}"]
    return lines


def integer_guard():
    """Returns lines that fail to compile (0/0) if integers have 8 bytes, as with -fdefault-integer-8. Modules need no such lines: their interfaces fail to compile by themselves."""
    return ["integer MPI_NEEDS_INTEGER4", "parameter (MPI_NEEDS_INTEGER4=(64-bit_size(1))/(64-bit_size(1)))"]


def mpif():
    lines = ["! mpif.h - generated by tools/abi/generate.py; do not edit.",
             "! With integers of 8 bytes (-fdefault-integer-8 and similar) the division by zero below fails."] + integer_guard() + old_constants()
    for name, kind in FUNCTIONS.items():
        lines += [f"{kind.replace('MPI_ADDRESS_KIND', '8')} {name}", f"external {name}", f"{kind.replace('MPI_ADDRESS_KIND', '8')} P{name}", f"external P{name}"]
    lines += [f"external {name}" for name in CALLBACK_CONSTANTS + OLD_CALLBACK_CONSTANTS]
    return "".join(line + "\n" if line.startswith("!") else f"      {line}\n" for line in lines)


def wrap(head, names):
    """Returns a list of names, wrapped with continuation lines of free form."""
    out, line = [], head
    for i, name in enumerate(names):
        word = name + (", " if i + 1 < len(names) else ")")
        if len(line) + len(word) > 110:
            out.append(line.rstrip() + " &")
            line = "    & "
        line += word
    return "\n".join(out + [line if names else head + ")"])


def imports_of(function, parameters, modern):
    """Returns the names that a declaration in an interface block imports from its module."""
    found = {p.kind for p in parameters if p.kind and not (modern and p.name == "baseptr")}
    if modern:
        found |= {p.handle for p in parameters if p.handle} | {p.base for p in parameters if p.is_callback}
        found |= {"MPI_Status" for p in parameters if p.base == "MPI_Status"}
        found |= {"c_ptr" for p in parameters if p.name in ADDRESS_OUT}
    else:
        found |= {"MPI_STATUS_SIZE" for p in parameters if p.base == "MPI_Status"}
    if "MPI_ADDRESS_KIND" in FUNCTIONS.get(function.name, ""):
        found.add("MPI_ADDRESS_KIND")
    return sorted(found)


def body(function, form, prefix, c_pointer=False):
    """Returns the declaration of one procedure for an interface block. `c_pointer`: the form in module mpi whose address is a
    type(c_ptr)."""
    modern = form != OLD_FORM
    if form == BY_DESCRIPTOR and not takes_descriptors(function):
        form = BY_REFERENCE
    name = prefix + function.name + (form if modern else "_cptr" if c_pointer else "")
    parameters = parameters_of(function)
    names = [p.name for p in parameters]
    is_function = function.name in FUNCTIONS
    no_error = is_function or function.name == "MPI_Pcontrol"
    word = "function" if is_function else "subroutine"
    lines = [wrap(f"{word} {name}(", names + ([] if no_error else ["ierror"])) + (" result(value)" if is_function else "")]
    if form == BY_DESCRIPTOR:
        lines[0] += f" &\n    & bind(C, name='{name.lower()}')"
    imports = imports_of(function, parameters, modern)
    if c_pointer:
        imports = sorted(set(imports) | {"c_ptr"})
    lines += ["import :: " + ", ".join(imports)] if imports else []
    lines.append("implicit none")
    lines += [p.declared(BY_REFERENCE if c_pointer and p.name == "baseptr" else form) for p in parameters]
    if is_function:
        lines.append(f"{FUNCTIONS[function.name]} :: value")
    elif not no_error:
        lines.append(f"integer, {'optional, ' if modern else ''}intent(out) :: ierror")
    return lines + [f"end {word} {name}"]


def signature(function):
    """Returns the property that distinguishes procedures of one generic name: for each parameter whether it is an integer of 8 bytes."""
    return [p.base in KINDS for p in parameters_of(function)]


def generics(form, chosen):
    """Returns the procedures of each generic name of the `chosen` functions. In mpi_f08 a generic name includes its large-count procedures if their arguments differ."""
    found = {}
    by_name = {f.name: f for f in chosen}
    for f in by_name.values():
        if form and OLD.match(f.name):
            continue
        small = by_name.get(f.name.removesuffix("_c")) if f.name.endswith("_c") else None
        if not small:
            found.setdefault(f.name, []).insert(0, f)
        elif form:
            found.setdefault(small.name if signature(small) != signature(f) else f.name, []).append(f)
    return found


def interfaces(form, chosen):
    lines = []
    for prefix in ("", "P"):
        for generic, specifics in generics(form, chosen).items():
            pointers = form == OLD_FORM and any(p.name == "baseptr" for p in parameters_of(specifics[0]))
            lines.append(f"interface {prefix}{generic}" if form or pointers else "interface")
            for f in specifics:
                lines += body(f, form, prefix)
                if pointers:
                    lines += body(f, form, prefix, c_pointer=True)
            lines.append("end interface")
    return lines


def callback_interfaces():
    """Returns the abstract interfaces of callbacks in mpi_f08 (MPI 5.0 section 19.1.18)."""
    lines = ["abstract interface"]

    def procedure(name, *declarations, ierror=True):
        names = [d.rsplit(":: ", 1)[1].split("(")[0] for d in declarations] + (["ierror"] if ierror else [])
        imports = sorted(set(re.findall(r"type\((\w+)\)|kind=(\w+)", " ".join(declarations))[i][j]
                             for i in range(len(re.findall(r"type\((\w+)\)|kind=(\w+)", " ".join(declarations))))
                             for j in range(2)) - {""})
        lines.append(wrap(f"subroutine {name}(", names))
        if imports:
            lines.append("import :: " + ", ".join(imports))
        lines.append("implicit none")
        lines.extend(declarations)
        if ierror:
            lines.append("integer :: ierror")
        lines.append(f"end subroutine {name}")

    address = "integer(kind=MPI_ADDRESS_KIND) :: "
    for suffix, kind in (("", "integer"), ("_c", "integer(kind=MPI_COUNT_KIND)")):
        procedure(f"MPI_User_function{suffix}", "type(c_ptr), value :: invec", "type(c_ptr), value :: inoutvec",
                  f"{kind} :: len", "type(MPI_Datatype) :: datatype", ierror=False)
        procedure(f"MPI_Datarep_conversion_function{suffix}", "type(c_ptr), value :: userbuf", "type(MPI_Datatype) :: datatype",
                  f"{kind} :: count", "type(c_ptr), value :: filebuf", "integer(kind=MPI_OFFSET_KIND) :: position",
                  address + "extra_state")
    procedure("MPI_Datarep_extent_function", "type(MPI_Datatype) :: datatype", address + "extent", address + "extra_state")
    for kind, handle in (("Comm", "comm"), ("Type", "datatype"), ("Win", "win")):
        of = f"type(MPI_{'Datatype' if kind == 'Type' else kind}) :: {handle}"
        procedure(f"MPI_{kind}_copy_attr_function", of, f"integer :: {kind.lower()}_keyval", address + "extra_state",
                  address + "attribute_val_in", address + "attribute_val_out", "logical :: flag")
        procedure(f"MPI_{kind}_delete_attr_function", of, f"integer :: {kind.lower()}_keyval", address + "attribute_val",
                  address + "extra_state")
    for kind in ("Comm", "Win", "File", "Session"):
        procedure(f"MPI_{kind}_errhandler_function", f"type(MPI_{kind}) :: {kind.lower()}", "integer :: error_code", ierror=False)
    procedure("MPI_Grequest_query_function", address + "extra_state", "type(MPI_Status) :: status")
    procedure("MPI_Grequest_free_function", address + "extra_state")
    procedure("MPI_Grequest_cancel_function", address + "extra_state", "logical :: complete")
    lines.append("end interface")
    # The predefined callbacks, such as MPI_COMM_DUP_FN.
    lines.append("interface")
    for kind, handle in (("Comm", "comm"), ("Type", "datatype"), ("Win", "win")):
        of = f"type(MPI_{'Datatype' if kind == 'Type' else kind}) :: {handle}"
        for name in ("NULL_COPY_FN", "DUP_FN"):
            procedure(f"MPI_{kind.upper()}_{name}", of, f"integer :: {kind.lower()}_keyval", address + "extra_state",
                      address + "attribute_val_in", address + "attribute_val_out", "logical :: flag")
        procedure(f"MPI_{kind.upper()}_NULL_DELETE_FN", of, f"integer :: {kind.lower()}_keyval", address + "attribute_val",
                  address + "extra_state")
    lines += ["end interface", "external :: MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL_C"]
    return lines


COMPARISONS = (("operator(==)", "eq"), ("operator(/=)", "ne"))


def old_module():
    lines = ["! Module mpi - generated by tools/abi/generate.py; do not edit.", "module mpi", "use, intrinsic :: iso_c_binding, only: c_ptr",
             "implicit none", "private :: c_ptr"] + old_constants()
    lines += [f"external {name}" for name in CALLBACK_CONSTANTS + OLD_CALLBACK_CONSTANTS]
    lines += interfaces(OLD_FORM, functions()) + sizeof_lines() + sync_lines(OLD_FORM) + ["end module mpi"]
    return "\n".join(lines) + "\n"


def sizeof_lines():
    """Returns the interface of MPI_SIZEOF, which MPI 4.0 deprecates. Only the type of its argument matters."""
    lines = ["interface MPI_Sizeof"]
    for kind, bytes_of in (("integer", (1, 2, 4, 8)), ("logical", (1, 2, 4, 8)), ("real", (4, 8)), ("complex", (4, 8)), ("character", (1,))):
        for size in bytes_of:
            name = f"MPI_Sizeof_{kind}{size * 2 if kind == 'complex' else size}"
            lines += [f"subroutine {name}(x, size, ierror)", "implicit none",
                      ("character(len=*)" if kind == "character" else f"{kind}(kind={size})") + ", dimension(..), intent(in) :: x",
                      "integer, intent(out) :: size", "integer, optional, intent(out) :: ierror", f"end subroutine {name}"]
    return lines + ["end interface"]


def sync_lines(form):
    name = f"MPI_F_sync_reg{form or ''}"
    head = f"subroutine {name}(buf)" + (f" bind(C, name='{name.lower()}')" if form == BY_DESCRIPTOR else "")
    buffer = "type(*), dimension(..), asynchronous :: buf" if form == BY_DESCRIPTOR else buffer_lines("buf")
    return ["interface MPI_F_sync_reg" if form else "interface", head, "implicit none", buffer, f"end subroutine {name}", "end interface"]


def modern_module(form):
    lines = ["! Module mpi_f08 - generated by tools/abi/generate.py; do not edit.", "module mpi_f08",
             "use, intrinsic :: iso_c_binding, only: c_ptr", "implicit none", "private :: c_ptr"]
    for name, value, kind in number_constants():
        lines.append(f"integer{f'(kind={kind})' if kind else ''}, parameter :: {name} = {value}")
    lines += [f"logical, parameter :: {name} = .{str(form == BY_DESCRIPTOR).lower()}." for name in ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING")]
    lines += ["type, bind(C) :: MPI_Status", "integer :: MPI_SOURCE", "integer :: MPI_TAG", "integer :: MPI_ERROR",
              "integer, private :: internal(5)", "end type MPI_Status"]
    for handle in compat.HANDLES:
        lines += [f"type, bind(C) :: {handle}", "integer :: MPI_VAL", f"end type {handle}"]
    lines += [f"type({kind}), parameter :: {name} = {kind}({value})" for name, kind, value in handle_constants()]
    for name, shape in SENTINELS:
        kind = "type(MPI_Status)" if "STATUS" in name else "integer"
        lines += [f"{kind} :: {name}{shape.replace('(8)', '').replace('8,', '')}", f"common /mpi_abi_places/ {name}"]
    for name, shape in (("MPI_ARGV_NULL", "(1)"), ("MPI_ARGVS_NULL", "(1,1)")):
        lines += [f"character(len=1) :: {name}{shape}", f"common /mpi_abi_texts/ {name}"]
    lines += callback_interfaces() + interfaces(form, functions())
    for operator, word in COMPARISONS:
        lines.append(f"interface {operator}")
        for handle in compat.HANDLES:
            name = f"{handle}_{word}_f08"
            lines += [f"function {name}(a, b) result(value)", f"import :: {handle}", "implicit none", f"type({handle}), intent(in) :: a, b",
                      "logical :: value", f"end function {name}"]
        lines.append("end interface")
    status = ["import :: MPI_Status, MPI_STATUS_SIZE", "implicit none"]
    for name, there, here in (("MPI_Status_f2f08", "integer, intent(in) :: f_status(MPI_STATUS_SIZE)", "type(MPI_Status), intent(out) :: f08_status"),
                              ("MPI_Status_f082f", "type(MPI_Status), intent(in) :: f08_status", "integer, intent(out) :: f_status(MPI_STATUS_SIZE)")):
        first, second = re.search(r":: (\w+)", there)[1], re.search(r":: (\w+)", here)[1]
        lines += [f"interface {name}", f"subroutine {name}_f08({first}, {second}, ierror)", *status, there, here,
                  "integer, optional, intent(out) :: ierror", f"end subroutine {name}_f08", "end interface"]
    lines += sizeof_lines() + sync_lines(form) + ["end module mpi_f08"]
    return "\n".join(lines) + "\n"


def extension_constants(form):
    """Returns the declarations of the extensions' constants: for mpi_f08, or for the older interfaces in fixed and free form."""
    lines = []
    for c in table.extension_constants():
        name, value = c["name"], value_of(c)
        if form == OLD_FORM:
            lines += [f"integer {name}", f"parameter ({name}={value})"]
        elif c["kind"] == "handle":
            lines.append(f"type({c['type']}), parameter :: {name} = {c['type']}({value})")
        else:
            lines.append(f"integer, parameter :: {name} = {value}")
    return lines


def mpif_ext():
    lines = ["! mpif-ext.h - constants of Starling's extensions, for use after mpif.h. Generated by tools/abi/generate.py; do not edit."]
    lines += [f"      {line}" for line in extension_constants(OLD_FORM)]
    return "\n".join(lines) + "\n"


def extension_module(form):
    """Returns module mpi_ext or mpi_f08_ext. A program uses it together with module mpi or mpi_f08, whose names it does not repeat."""
    name, base = ("mpi_f08_ext", "mpi_f08") if form else ("mpi_ext", "mpi")
    assert not any(has_buffers(f) for f in extensions()), "an extension with buffers needs a module for each form"
    used = {i for f in extensions() for i in imports_of(f, parameters_of(f), form)}
    if form:
        used |= {c["type"] for c in table.extension_constants() if c["kind"] == "handle"}
    lines = [f"! Module {name}: Starling's extensions - generated by tools/abi/generate.py; do not edit.", f"module {name}"]
    if used:
        lines.append(wrap(f"use {base}, only: ", sorted(used)).removesuffix(")"))
    lines.append("implicit none")
    if used:
        lines.append(wrap("private :: ", sorted(used)).removesuffix(")"))
    return "\n".join(lines + extension_constants(form) + interfaces(form, extensions()) + [f"end module {name}"]) + "\n"


def write():
    """Returns three maps from file names to texts: sources of the library, files for programs to include, and modules."""
    modules = {"mpi.f90": old_module(), "mpi_f08.f90": modern_module(BY_DESCRIPTOR), "mpi_f08_by_reference.f90": modern_module(BY_REFERENCE),
               "mpi_ext.f90": extension_module(OLD_FORM), "mpi_f08_ext.f90": extension_module(BY_REFERENCE)}
    return ({"entries.cpp": entries(extensions()), "library.h": library(), "numbers.h": numbers()}, {"mpif.h": mpif(), "mpif-ext.h": mpif_ext()}, modules)
