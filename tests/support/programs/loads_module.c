#include <dlfcn.h>
int main(int argc, char **argv) {
    void *module = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    if (module == 0)
        return 9;
    return ((int (*)(void))dlsym(module, "run"))();
}
