job "tool-${JOB_ID}" {
  namespace = "${NS}"
  group "g" {
    ephemeral_disk { size = ${DISK} }
    task "main" {
      driver = "docker"
      config {
        image   = "${IMAGE}:${TAG}"
        command = "start"
        args    = ["--${MODE}"]
        shm_size = ${SHM}
      }
      resources {
        cores      = ${CORES}
        memory     = ${RAM}
        memory_max = ${RAM}
        device "gpu" {
          count = ${GPUS}
        }
      }
    }
  }
}
