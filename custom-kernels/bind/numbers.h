/* Strict reading of numbers and lists: nothing may precede or follow them. */
#ifndef PLUMB_NUMBERS_H
#define PLUMB_NUMBERS_H

#include <hwloc.h>
#include <stdbool.h>

enum { MAX_NUMBER = 1 << 20 }; /* larger than any CPU index; keeps bitmaps small */

/* Read a number from 0 to MAX_NUMBER, or one character, at *at and move *at behind it. False if there is
 * none. */
bool take_number(const char **at, unsigned *value);
bool take_character(const char **at, char wanted);

/* Read all of `digits` as a number from 0 to MAX_NUMBER. False if it is anything else. */
bool parse_number(const char *digits, unsigned *value);

/* Read two numbers with a comma between them, such as "3,17". False if it is anything else. */
bool parse_two_numbers(const char *list, unsigned *first, unsigned *second);

/* Read a CPU list such as "0-3,8" into `set`. False if it is empty or anything else. */
bool parse_list(const char *list, hwloc_bitmap_t set);

#endif
