# The script that the task runs is written by a template of its own.
variable "epochs" { default = 5 }

job "scripted" {
  type = "batch"
  group "g" {
    task "shell" {
      driver = "exec"
      config {
        command = "/bin/bash"
        args    = ["-e", "${NOMAD_TASK_DIR}/run.sh"]
      }
      env {
        DATA = "/srv/data"
      }
      template {
        destination = "local/run.sh"
        data        = <<-EOT
          #!/bin/bash
          module load cuda
          export OMP_NUM_THREADS=4
          {{ with nomadVar "jobs/scripted" }}
          TOKEN={{ .token }}
          {{ end }}
          mpirun -np 8 python3 train.py --data $DATA --epochs ${var.epochs} --node ${node.unique.name}
        EOT
      }
      resources {
        memory = 900
      }
    }
    task "python" {
      driver = "exec"
      config {
        command = "python3"
        args    = ["local/job.py"]
      }
      template {
        destination = "local/job.py"
        data        = <<EOT
#!/usr/bin/env python3
import this
EOT
      }
      resources {
        memory = 100
      }
    }
  }
}
