/* Sends 1000 bytes to itself by TCP and gets 10 back, then copies with a bad address, and from another user
 * namespace. */
#include <arpa/inet.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
int main(void) {
    static char block[1000];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server, (void *)&address, size) || listen(server, 1))
        return 1;
    if (getsockname(server, (void *)&address, &size) || connect(client, (void *)&address, size))
        return 2;
    int peer = accept(server, NULL, NULL);
    if (write(client, block, 1000) != 1000 || recv(peer, block, 1000, MSG_WAITALL) != 1000)
        return 3;
    if (write(peer, block, 10) != 10 || recv(client, block, 10, MSG_WAITALL) != 10)
        return 4;
    struct iovec to = {block, 1}, from = {(void *)8, 1}, own = {block, 1};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != -1)
        return 5;
    if (unshare(CLONE_NEWUSER) != 0)
        return 77;
    return process_vm_readv(getppid(), &to, 1, &own, 1, 0) != -1;
}
