variable "token" {
  type = string
}
variable "memory" {
  type = number
}
job "secretive" {
  group "g" {
    task "t" {
      driver = "exec"
      config {
        command = "/bin/agent"
        args    = ["--token", var.token, "--mode", "slow"]
      }
      env { TOKEN = var.token }
      resources { memory = var.memory }
    }
  }
}
