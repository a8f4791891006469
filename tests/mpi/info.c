// Tests info objects: set, get, overwrite, delete, order of keys, duplicates, long values, blanks, MPI_INFO_ENV.
#include "check.h"

int main(int argc, char** argv) {
    MPI_Info info, copy;
    int n, flag, length;
    char key[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL + 1];
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_get_nkeys(info, &n));
    EXPECT_INT(n, 0);
    OK(MPI_Info_set(info, "host", "localhost"));
    OK(MPI_Info_set(info, "path", "/usr/bin:/bin"));
    OK(MPI_Info_set(info, "a key with blanks", " a value "));
    OK(MPI_Info_get_nkeys(info, &n));
    EXPECT_INT(n, 3);
    OK(MPI_Info_get(info, "path", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && strcmp(value, "/usr/bin:/bin") == 0, "%s", value);
    OK(MPI_Info_set(info, "path", "other"));
    OK(MPI_Info_get_nkeys(info, &n));
    EXPECT_INT(n, 3);
    OK(MPI_Info_get(info, "path", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && strcmp(value, "other") == 0, "%s", value);
    OK(MPI_Info_get(info, "not there", MPI_MAX_INFO_VAL, value, &flag));
    EXPECT_INT(flag, 0);
    OK(MPI_Info_get_valuelen(info, "host", &length, &flag));
    CHECK(flag && length == 9, "%d", length);
    OK(MPI_Info_get(info, "host", 4, value, &flag));  // the value is cut to four characters
    CHECK(flag && strcmp(value, "loca") == 0, "%s", value);
#if MPI_AT_LEAST(4, 0)
    length = sizeof value;
    OK(MPI_Info_get_string(info, "host", &length, value, &flag));
    CHECK(flag && strcmp(value, "localhost") == 0 && length == 10, "%s %d", value, length);
    length = 0;
    OK(MPI_Info_get_string(info, "host", &length, value, &flag));
    CHECK(flag && length == 10, "%d", length);
    length = 5;
    OK(MPI_Info_get_string(info, "host", &length, value, &flag));
    CHECK(flag && strcmp(value, "loca") == 0 && length == 10, "%s %d", value, length);
    MPI_Info environment;
    OK(MPI_Info_create_env(argc, argv, &environment));
    OK(MPI_Info_free(&environment));
#endif
    int seen = 0;
    for (int i = 0; i < 3; i++) {
        OK(MPI_Info_get_nthkey(info, i, key));
        seen |= strcmp(key, "host") == 0 ? 1 : strcmp(key, "path") == 0 ? 2 : strcmp(key, "a key with blanks") == 0 ? 4 : 8;
    }
    EXPECT_INT(seen, 7);
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_delete(info, "host"));
    OK(MPI_Info_get_nkeys(info, &n));
    EXPECT_INT(n, 2);
    OK(MPI_Info_get_nkeys(copy, &n));
    EXPECT_INT(n, 3);
    char longest[MPI_MAX_INFO_VAL];
    memset(longest, 'v', sizeof longest);
    longest[MPI_MAX_INFO_VAL - 1] = 0;
    OK(MPI_Info_set(copy, "long", longest));
    OK(MPI_Info_get(copy, "long", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && strcmp(value, longest) == 0);
    OK(MPI_Info_free(&copy));
    OK(MPI_Info_free(&info));
    CHECK(info == MPI_INFO_NULL);
    OK(MPI_Info_get(MPI_INFO_ENV, "command", MPI_MAX_INFO_VAL, value, &flag));
    OK(MPI_Info_get_nkeys(MPI_INFO_ENV, &n));
    CHECK(n >= 0, "%d", n);
    OK(MPI_Finalize());
    return 0;
}
