#include "numbers.h"

#include <ctype.h>

bool take_number(const char **at, unsigned *value) {
    if (!isdigit((unsigned char)**at))
        return false;
    unsigned sum = 0;
    for (; isdigit((unsigned char)**at); (*at)++) {
        sum = sum * 10 + (unsigned)(**at - '0');
        if (sum > MAX_NUMBER)
            return false;
    }
    *value = sum;
    return true;
}

bool take_character(const char **at, char wanted) {
    if (**at != wanted)
        return false;
    (*at)++;
    return true;
}

bool parse_number(const char *digits, unsigned *value) {
    return take_number(&digits, value) && *digits == '\0';
}

bool parse_two_numbers(const char *list, unsigned *first, unsigned *second) {
    return take_number(&list, first) && take_character(&list, ',') && parse_number(list, second);
}

bool parse_list(const char *list, hwloc_bitmap_t set) {
    hwloc_bitmap_zero(set);
    do {
        unsigned first, last;
        if (!take_number(&list, &first))
            return false;
        last = first;
        if (take_character(&list, '-') && (!take_number(&list, &last) || last < first))
            return false;
        hwloc_bitmap_set_range(set, first, (int)last);
    } while (take_character(&list, ','));
    return *list == '\0';
}
