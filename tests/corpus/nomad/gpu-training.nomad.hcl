job "finetune" {
  type      = "batch"
  namespace = "research"

  meta = {
    team                = "speech"
    "x.org/cost-centre" = "4711"
  }

  group "trainers" {
    count = 2

    ephemeral_disk {
      size    = 51200
      migrate = true
    }

    task "train" {
      driver = "docker"
      config {
        image   = "registry.example/train:cuda12"
        command = "torchrun"
        args = [
          "--nproc_per_node", "4",
          "train.py",
          "--batch-size", "16",
        ]
        shm_size = 8589934592
      }
      resources {
        cores  = 32
        memory = 131072
        device "nvidia/gpu" {
          count = 4
          constraint {
            attribute = "${device.model}"
            value     = "NVIDIA A100-SXM4-80GB"
          }
          constraint {
            attribute = "${device.attr.memory}"
            operator  = ">="
            value     = "79 GiB"
          }
          affinity {
            attribute = "${device.attr.memory}"
            operator  = ">="
            value     = "100 GiB"
            weight    = 50
          }
        }
        numa {
          affinity = "prefer"
          devices  = ["nvidia/gpu"]
        }
      }
    }
  }
}
