// The types of OpenSHMEM's functions, as lists of X(name in the function, C type).
#pragma once

#define FOR_RMA(X)                                                                                                             \
    X(float, float)                                                                                                            \
    X(double, double) X(longdouble, long double) X(char, char) X(schar, signed char) X(short, short) X(int, int) X(long, long) \
        X(longlong, long long) X(uchar, unsigned char) X(ushort, unsigned short) X(uint, unsigned int) X(ulong, unsigned long) \
            X(ulonglong, unsigned long long) X(int8, int8_t) X(int16, int16_t) X(int32, int32_t) X(int64, int64_t)             \
                X(uint8, uint8_t) X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t)                  \
                    X(ptrdiff, ptrdiff_t)
#define FOR_SIZES(X) X(8, uint8_t) X(16, uint16_t) X(32, uint32_t) X(64, uint64_t) X(128, struct sixteen)
struct sixteen {
    uint64_t a, b;
};

#define FOR_AMO(X)                                                                                                      \
    X(int, int)                                                                                                         \
    X(long, long) X(longlong, long long) X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long) \
        X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t) X(ptrdiff, ptrdiff_t)
#define FOR_AMO_FLOATS(X) X(float, float) X(double, double)
#define FOR_BITWISE(X)                                                                                               \
    X(uint, unsigned int)                                                                                            \
    X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t) \
        X(uint64, uint64_t)

#define FOR_WAIT(X) X(short, short) X(int, int) X(long, long) X(longlong, long long)
#define FOR_SYNC(X) FOR_AMO(X) X(short, short) X(ushort, unsigned short)

#define FOR_FLOATS(X) X(float, float) X(double, double) X(longdouble, long double)
#define FOR_COMPLEX(X) X(complexf, float _Complex) X(complexd, double _Complex)
#define FOR_REDUCE_BITWISE(X)                                                                                         \
    X(uchar, unsigned char)                                                                                           \
    X(short, short) X(ushort, unsigned short) X(int, int) X(uint, unsigned int) X(long, long) X(ulong, unsigned long) \
        X(longlong, long long) X(ulonglong, unsigned long long) X(int8, int8_t) X(int16, int16_t) X(int32, int32_t)   \
            X(int64, int64_t) X(uint8, uint8_t) X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t)
#define FOR_REDUCE_INTEGERS(X) FOR_REDUCE_BITWISE(X) X(char, char) X(schar, signed char) X(ptrdiff, ptrdiff_t)
