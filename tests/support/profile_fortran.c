/* Calls MPI as Fortran does, for the tests of profiles. */
#include <mpi.h>
void mpi_init_(int *);
void mpi_pcontrol_(int *);
void mpi_comm_rank_(int *, int *, int *);
void mpi_sendrecv_(void *, int *, int *, int *, int *, void *, int *, int *, int *, int *, int *, int *,
                   int *);
void mpi_isend_(void *, int *, int *, int *, int *, int *, int *, int *);
void mpi_recv_(void *, int *, int *, int *, int *, int *, int *, int *);
void mpi_wait_(int *, int *, int *);
void mpi_allreduce_(void *, void *, int *, int *, int *, int *, int *);
void mpi_allgather_(void *, int *, int *, void *, int *, int *, int *, int *);
void mpi_finalize_(int *);
extern int mpipriv1_[]; /* of MPICH's mpif.h: MPI_BOTTOM, MPI_IN_PLACE, ... */
int main(void) {
    int world, real8, sum, rank, peer, fault, tag = 0, count = 4, request, status[8];
    int ignored = 999, off = 0, on = 1;
    double out[4] = {0}, in[4], all[8] = {0};
    mpi_init_(&fault);
    world = MPI_Comm_c2f(MPI_COMM_WORLD);
    real8 = MPI_Type_c2f(MPI_DOUBLE);
    sum = MPI_Op_c2f(MPI_SUM);
    mpi_comm_rank_(&world, &rank, &fault);
    mpi_pcontrol_(&off);
    mpi_comm_rank_(&world, &rank, &fault);
    mpi_pcontrol_(&on);
    peer = 1 - rank;
    mpi_sendrecv_(out, &count, &real8, &peer, &tag, in, &count, &real8, &peer, &tag, &world, status, &fault);
    mpi_isend_(out, &count, &real8, &peer, &tag, &world, &request, &fault);
    mpi_recv_(in, &count, &real8, &peer, &tag, &world, MPI_F_STATUS_IGNORE, &fault);
    mpi_wait_(&request, status, &fault);
    mpi_allreduce_(out, in, &count, &real8, &sum, &world, &fault);
    for (int i = 0; i < 4; i++)
        all[4 * rank + i] = rank + 1;
    mpi_allgather_(&mpipriv1_[1], &ignored, &real8, all, &count, &real8, &world, &fault);
    mpi_finalize_(&fault);
    return all[0] == 1 && all[7] == 2 ? fault : 9;
}
