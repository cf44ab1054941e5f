/* MPI without MPI_Init: a session beside another, which ends first, with a barrier and one message to each
 * rank; as often as its argument says, which some libraries allow once. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
    usleep(20000);
    for (int rounds = count > 1 ? atoi(words[1]) : 1; rounds > 0; rounds--) {
        MPI_Session first, session;
        MPI_Group group;
        MPI_Comm comm;
        int rank, size, received;
        if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &first) != MPI_SUCCESS)
            return 1;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        MPI_Session_finalize(&first);
        MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
        MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        usleep(20000);
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &received, 1, MPI_INT, (rank + size - 1) % size,
                     0, comm, MPI_STATUS_IGNORE);
        MPI_Barrier(comm);
        MPI_Comm_free(&comm);
        MPI_Group_free(&group);
        MPI_Session_finalize(&session);
    }
    return usleep(20000);
}
